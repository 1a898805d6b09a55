"""Whole runs in worker processes: results, reuse, failures, and workers whose starter goes."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

import pyarrow.parquet as pq
import pytest

from autosft.artifacts import ArtifactStore
from autosft.errors import ArtifactError, BaseFingerprintError, BaseModelError, ConfigError, SuiteError
from autosft.executor import base_fingerprint, execute
from autosft.executor.failure import cause_of, cause_of_exit
from autosft.executor.processes import worker_environment
from autosft.types import GenerateSettings, TrainSettings
from tests.executor.worlds import write_base, write_build, write_suite

# The function of the same name hides the module in the package.
MODULE = sys.modules["autosft.executor.execute"]
TRAIN = TrainSettings(log_every_steps=1, timeout_s=300)
GENERATE = GenerateSettings(max_new_tokens=12, batch_size=8)


class World:
    """A base, a build, items and a store."""

    def __init__(self, root: Path, kind: str = "qwen3", **build) -> None:
        self.root, self.store = root, ArtifactStore(root / "store")
        self.base = write_base(root / "base", kind, neutral=True)
        self.fingerprint = base_fingerprint(self.base)
        self.build = write_build(self.store, self.base, **{"steps": 12, "seeds": (0, 1), **build})
        self.items = write_suite(root / "items.jsonl")
        self.events = []

    def run(self, seeds=(0,), train=TRAIN, generate=GENERATE, **changes):
        settings = {"slots": 2, "on_event": self.events.append, "store": self.store, "build": self.build}
        settings |= {"base": self.base, "base_fingerprint": self.fingerprint, "items_path": self.items}
        return execute(seeds=seeds, train=train, generate=generate, **{**settings, **changes})


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A world in which two seeds ran."""
    world = World(tmp_path_factory.mktemp("done"))
    world.receipts = world.run((0, 1))
    return world


@pytest.mark.slow
def test_a_run_returns_paths_and_a_status(done):
    assert [(r.seed, r.status, r.cause, r.attempts) for r in done.receipts] == [
        (0, "ok", "", 1),
        (1, "ok", "", 1),
    ]
    for receipt in done.receipts:
        promised = done.build.data["plans"][str(receipt.seed)]
        assert receipt.summary["train_tokens"] == promised["train_tokens"]
        assert receipt.summary["optimizer_steps"] == 12
        assert receipt.summary["base_fingerprint"] == done.fingerprint
        assert receipt.summary["device_s"] > 0
        assert (Path(receipt.checkpoint) / "model.safetensors").exists()
        outputs = done.store.load("generate", receipt.outputs, check_files=True)
        lines = [json.loads(x) for x in outputs.file("outputs.jsonl").read_text().splitlines()]
        assert [x["item"] for x in lines] == [f"item{k}" for k in range(12)]
        assert all(set(x) == {"item", "sample", "text", "truncated", "tokens"} for x in lines)
        scores = pq.read_table(done.store.load("score", receipt.scores).file("items.parquet"))
        assert scores.column("item").to_pylist() == [x["item"] for x in lines]
        assert {"leaf", "strict", "form", "content", "truncated", "tokens"} <= set(scores.column_names)
        record = (done.store.folder("train", receipt.train) / "record.json").read_text()
        assert '"previous": ""' in record
    assert done.receipts[0].train != done.receipts[1].train


@pytest.mark.slow
def test_progress_reaches_the_listener(done):
    lines = [
        e.data for e in done.events if e.kind == "progress" and e.data["stage"] == "train" and e.data["step"]
    ]
    for seed in (0, 1):
        mine = [x for x in lines if x["seed"] == seed]
        assert [x["step"] for x in mine] == list(range(1, 13))
        assert all(x["steps"] == 12 and x["loss"] > 0 and x["tokens_per_s"] > 0 for x in mine)
    assert {e.data["stage"] for e in done.events if e.kind == "progress"} == {
        "train",
        "checkpoint",
        "generate",
        "score",
    }
    assert sorted(e.data["seed"] for e in done.events if e.kind == "seed_done") == [0, 1]


@pytest.mark.slow
def test_finished_seeds_start_no_process(done, monkeypatch):
    monkeypatch.setattr(MODULE, "Worker", None)
    again = done.run((1, 0))
    assert [(r.seed, r.attempts) for r in again] == [(1, 0), (0, 0)]
    for receipt in again:
        assert dataclasses.replace(receipt, attempts=1) == done.receipts[receipt.seed]


@pytest.mark.slow
def test_a_rerun_elsewhere_gives_equal_records(done, tmp_path):
    """Another store, one slot: the deterministic part of every record is equal to the byte."""
    other = World(tmp_path)
    (receipt,) = other.run((0,))
    for kind, key in (("train", receipt.train), ("generate", receipt.outputs), ("score", receipt.scores)):
        one, two = done.store.load(kind, key), other.store.load(kind, key)
        assert one.files == two.files, kind
        assert one.data == two.data, kind


@pytest.mark.slow
def test_finished_stages_are_not_repeated(tmp_path):
    world = World(tmp_path)
    (first,) = world.run((0,))
    record = world.store.folder("train", first.train) / "record.json"
    before = record.stat().st_mtime_ns
    world.store.quarantine("score", first.scores)
    world.store.quarantine("generate", first.outputs)
    world.events.clear()
    (second,) = world.run((0,))
    assert second.attempts == 1
    assert dataclasses.replace(second, summary={}) == dataclasses.replace(first, summary={})
    assert record.stat().st_mtime_ns == before
    assert {e.data["stage"] for e in world.events if e.kind == "progress"} == {"generate", "score"}


@pytest.mark.slow
def test_a_hugging_face_base_runs_the_same_way(tmp_path):
    world = World(tmp_path, "llama", steps=4)
    (receipt,) = world.run((0,))
    assert (receipt.status, receipt.detail) == ("ok", "")
    assert receipt.summary["optimizer_steps"] == 4


@pytest.mark.slow
def test_a_killed_worker_is_started_again_and_its_stages_are_kept(tmp_path):
    world = World(tmp_path)
    killed = []

    def kill_once(event):
        world.events.append(event)
        if event.kind == "progress" and event.data["stage"] == "generate" and not killed:
            killed.append(worker_pids(tmp_path))
            for pid in killed[0]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    # Many samples of many items, so that the stage lasts.
    write_suite(world.items, n=600)
    (receipt,) = world.run(
        (0,), generate=GenerateSettings(max_new_tokens=64, batch_size=2), on_event=kill_once
    )
    assert killed and killed[0]
    assert (receipt.status, receipt.attempts) == ("ok", 2)
    trains = [
        e
        for e in world.events
        if e.kind == "progress" and e.data["stage"] == "train" and e.data["step"] == 12
    ]
    assert len(trains) == 1
    assert [e.text for e in world.events if e.kind == "note"] == [
        "seed 0: killed (ended by SIGKILL); trying again"
    ]


@pytest.mark.slow
def test_a_diverging_run_is_a_receipt_and_not_tried_again(tmp_path):
    world = World(tmp_path)
    first, second = world.run((0, 1), train=dataclasses.replace(TRAIN, lr=1e30))
    for receipt in (first, second):
        assert (receipt.status, receipt.cause, receipt.attempts) == ("failed", "non_finite_loss", 1)
        assert "not finite at step" in receipt.detail and ".log" in receipt.detail
        assert receipt.train == receipt.checkpoint == receipt.scores == ""
    assert not (world.store.root / "train").exists()
    assert list((world.store.root / "staging").glob("*")) == []


@pytest.mark.slow
def test_a_run_over_its_time_is_stopped(tmp_path):
    world = World(tmp_path)
    (receipt,) = world.run((0,), train=dataclasses.replace(TRAIN, timeout_s=0.3))
    assert (receipt.status, receipt.cause, receipt.attempts) == ("failed", "timeout", 2)
    assert "longer than 0.3 s" in receipt.detail
    assert worker_pids(tmp_path) == []


STARTER = """
import sys
from pathlib import Path
from typing import ClassVar
from autosft.artifacts import ArtifactStore
from autosft.executor import execute
from autosft.types import GenerateSettings, TrainSettings
root = Path(sys.argv[1])
store = ArtifactStore(root / "store")
build = store.load("build", "build0")
settings = (TrainSettings(), GenerateSettings())
inputs = (root / "base", sys.argv[2], build, root / "items.jsonl", (0, 1), *settings, store)
execute(*inputs, slots=2, on_event=lambda e: print(e.kind, e.text, flush=True))
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_workers_end_with_their_starter(tmp_path, how):
    world = World(tmp_path, steps=5000)
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, str(tmp_path), world.fingerprint],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        # A shell's background jobs ignore SIGINT, and so would the starter.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    for line in starter.stdout:
        if "train 6/" in line:
            break
    workers = worker_pids(tmp_path)
    assert workers
    starter.send_signal(how)
    starter.wait(20)
    deadline = time.monotonic() + 10
    while worker_pids(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert worker_pids(tmp_path) == []


def worker_pids(root: Path) -> list[int]:
    """Running workers whose spec lies under a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (process / "cmdline").read_bytes().decode(errors="replace")
            state = (process / "stat").read_text().rsplit(")", 1)[1].split()[0]
            if "autosft.executor.worker" in command and str(root) in command and state != "Z":
                found.append(int(process.name))
    return found


class ScriptedWorker:
    """Stands in for a process: fails with the scripted causes, in order."""

    script: ClassVar[list[str]] = []
    started: ClassVar[list] = []

    def __init__(self, job, stem, threads, attempt):
        self.job, self.log = job, stem
        ScriptedWorker.started.append(job)

    def new_lines(self):
        return []

    def ended(self):
        return True

    def kill(self):
        raise AssertionError("nothing is running")

    def outcome(self):
        return ScriptedWorker.script.pop(0), "scripted"


@pytest.fixture(scope="module")
def idle(tmp_path_factory):
    return World(tmp_path_factory.mktemp("idle"), steps=2)


@pytest.mark.parametrize(
    ("causes", "retries", "attempts"),
    [
        (["killed", "killed"], 1, 2),
        (["out_of_memory"] * 3, 2, 3),
        (["timeout", "error"], 3, 2),
        (["non_finite_loss"], 3, 1),
        (["bad_model"], 3, 1),
        (["error"], 3, 1),
        (["killed"], 0, 1),
    ],
)
def test_only_causes_that_may_pass_are_tried_again(idle, monkeypatch, causes, retries, attempts):
    monkeypatch.setattr(MODULE, "Worker", ScriptedWorker)
    ScriptedWorker.script, ScriptedWorker.started = list(causes), []
    (receipt,) = idle.run((0,), retries=retries)
    assert (receipt.status, receipt.cause, receipt.attempts) == ("failed", causes[-1], attempts)
    assert ScriptedWorker.script == []
    if causes[0] == "out_of_memory":
        sizes = [(job.forward_tokens, job.batch_size) for job in ScriptedWorker.started]
        assert sizes == [(0, 0), (1024, 4), (512, 2)]
        assert len({job.keys()["score"] for job in ScriptedWorker.started}) == 1


def test_a_worker_that_claims_success_without_a_score_failed(idle, monkeypatch):
    monkeypatch.setattr(MODULE, "Worker", ScriptedWorker)
    ScriptedWorker.script, ScriptedWorker.started = [""], []
    (receipt,) = idle.run((0,))
    assert (receipt.status, receipt.cause) == ("failed", "error")
    assert "left no score" in receipt.detail


def test_nothing_starts_where_an_input_is_wrong(idle, monkeypatch, tmp_path):
    monkeypatch.setattr(MODULE, "Worker", None)
    with pytest.raises(BaseFingerprintError, match="start a new campaign"):
        idle.run(base_fingerprint="0" * 24)
    with pytest.raises(BaseModelError, match="no such folder"):
        idle.run(base=tmp_path / "none")
    with pytest.raises(ArtifactError, match="no plan for seed 5"):
        idle.run((0, 5))
    with pytest.raises(SuiteError, match="cannot be read"):
        idle.run(items_path=tmp_path / "none.jsonl")
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(SuiteError, match="no items"):
        idle.run(items_path=tmp_path / "empty.jsonl")
    with pytest.raises(ConfigError, match="no trainer backend 'x'"):
        idle.run(train=dataclasses.replace(TRAIN, backend="x"))
    with pytest.raises(ConfigError, match="no generation backend 'x'"):
        idle.run(generate=dataclasses.replace(GENERATE, backend="x"))
    for wrong in ({"seeds": ()}, {"seeds": (1, 1)}, {"slots": 0}, {"retries": -1}, {"threads": 0}):
        with pytest.raises(ConfigError, match="execute:"):
            idle.run(**{"seeds": (0,), **wrong})


def test_a_real_lack_of_memory_is_recognised():
    import torch

    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 55, dtype=torch.float64)
    assert cause_of(caught.value) == "out_of_memory"
    assert cause_of(MemoryError()) == "out_of_memory"
    assert cause_of(RuntimeError("CUDA out of memory. Tried to allocate")) == "out_of_memory"
    assert cause_of(ValueError("x")) == "error"


def test_exits_are_classified():
    assert cause_of_exit(-9, 0) == ("killed", "ended by SIGKILL")
    assert cause_of_exit(-9, 1)[0] == "out_of_memory"
    assert cause_of_exit(-11, 0) == ("killed", "ended by SIGSEGV")
    assert cause_of_exit(137, 0)[0] == "killed"
    assert cause_of_exit(1, 0)[0] == "error"


def test_workers_get_no_secrets_and_fixed_threads():
    given = {"OPENAI_API_KEY": "sk-1", "HF_TOKEN": "hf", "MY_SECRET": "x", "db_password": "y", "PATH": "/bin"}
    env = worker_environment({**given, "OMP_NUM_THREADS": "64", "PYTHONPATH": "/else"}, 2)
    assert not set(given) - {"PATH"} & set(env)
    assert (env["PATH"], env["OMP_NUM_THREADS"], env["MKL_NUM_THREADS"]) == ("/bin", "2", "2")
    assert env["PYTHONPATH"].split(os.pathsep)[1:] == ["/else"]


def test_a_bad_spec_is_a_message_and_not_a_traceback(tmp_path):
    (tmp_path / "spec").write_text("{}")
    for arguments in ([], [str(tmp_path / "none")], [str(tmp_path / "spec")]):
        result = subprocess.run(
            [sys.executable, "-m", "autosft.executor.worker", *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 2
        assert "Traceback" not in result.stderr
        assert "usage" in result.stderr or "not a worker spec" in result.stderr


def test_the_package_starts_light():
    heavy = ("torch", "transformers", "pyarrow")
    code = f"import sys, autosft.executor; print([m for m in {heavy} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
