"""A checkpoint on suites: results, resuming, refusals; and the commands around it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from autosft.cli import run_command
from autosft.errors import BaseModelError, ConfigError
from autosft.evals import Suite, load_suite
from autosft.executor import generate as backends
from autosft.executor.evaluate import evaluate, protocol_of
from autosft.executor.generate import Generated
from autosft.lab.base import base_dir
from autosft.types import EvalItem, Message, Requirement


def suite(n: int = 6) -> Suite:
    items = [
        EvalItem(
            f"i{k}",
            "mine",
            (Message("user", f"Say {k}."),),
            (Requirement("punctuation:no_comma"), Requirement("answer:number", {"answer": k})),
            "no_comma",
        )
        for k in range(n)
    ]
    return Suite("mine", tuple(items))


@pytest.mark.slow
def test_the_shipped_base_on_its_own_suite(tmp_path: Path) -> None:
    lab = load_suite("lab", prompts_per_leaf=2)
    result = evaluate(base_dir(), [lab], tmp_path)
    found = result["suites"]["lab"]
    assert found["n_items"] == 34 and 0 <= found["metrics"]["strict"]["mean"] <= 1
    assert pq.read_table(tmp_path / "lab/items.parquet").num_rows == 34
    assert json.loads((tmp_path / "results.json").read_text())["suites"]["lab"] == found
    before = (tmp_path / "artifacts/completed.jsonl").read_bytes()
    assert evaluate(base_dir(), [lab], tmp_path) == result
    assert (tmp_path / "artifacts/completed.jsonl").read_bytes() == before, "nothing is computed twice"


class Scripted:
    """A generation backend that answers rightly and counts what it was asked; may die on the way."""

    VERSION = 1

    def __init__(self, die_at: int = -1) -> None:
        self.jobs: list[list[str]] = []
        self.seeds: list[int] = []
        self.die_at = die_at

    def generate(self, job: backends.GenerateJob, report: backends.Report) -> list[Generated]:
        if len(self.jobs) == self.die_at:
            raise KeyboardInterrupt
        self.jobs.append(list(job.prompts.ids))
        self.seeds.append(job.seed)
        k = job.settings.samples_per_item
        return [
            Generated(i, s, f"It is {i[1:]}" + (", so" if s else ""), False, 4)
            for i in job.prompts.ids
            for s in range(k)
        ]


def scripted(monkeypatch: pytest.MonkeyPatch, die_at: int = -1) -> Scripted:
    backend = Scripted(die_at)
    monkeypatch.setattr(backends, "load_generator", lambda name: backend)
    return backend


def test_samples_are_averaged_and_kinds_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = scripted(monkeypatch)
    settings = {"mine": protocol_of("mine", samples=2)}
    found = evaluate(base_dir(), [suite()], tmp_path, settings=settings)["suites"]["mine"]
    assert found["metrics"]["strict"]["mean"] == 0.5 and found["metrics"]["content"]["mean"] == 1.0
    assert found["metrics"]["strict"]["n_samples"] == 2 and found["variance"]["sampling"] == 0.5
    assert found["counts"]["answers"] == 12 and len(backend.jobs) == 1


def test_a_killed_evaluation_goes_on_at_the_next_chunk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autosft.executor.evaluate.CHUNK_ANSWERS", 2)
    first = scripted(monkeypatch, die_at=2)
    with pytest.raises(KeyboardInterrupt):
        evaluate(base_dir(), [suite()], tmp_path)
    second = scripted(monkeypatch)
    found = evaluate(base_dir(), [suite()], tmp_path)["suites"]["mine"]
    assert first.jobs + second.jobs == [["i0", "i1"], ["i2", "i3"], ["i4", "i5"]]
    assert len({*first.seeds, *second.seeds}) == 3, "each chunk draws its own samples"
    assert found["metrics"]["strict"]["mean"] == 1.0


def test_refusals_say_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(monkeypatch)
    with pytest.raises(BaseModelError, match="no such folder"):
        evaluate(tmp_path / "none", [suite()], tmp_path / "out")
    with pytest.raises(ConfigError, match="each once"):
        evaluate(base_dir(), [suite(), suite()], tmp_path / "out")
    (tmp_path / "out").mkdir(exist_ok=True)
    (tmp_path / "out/checkpoint.json").write_text('{"checkpoint": "other"}')
    with pytest.raises(ConfigError, match="another checkpoint"):
        evaluate(base_dir(), [suite()], tmp_path / "out")
    with pytest.raises(ConfigError, match="one answer 3 times"):
        protocol_of("ifeval", samples=3, temperature=0.0)
    with pytest.raises(ConfigError, match="samples is 0"):
        protocol_of("ifeval", samples=0)


def test_protocols_are_those_of_the_papers() -> None:
    assert protocol_of("ifeval").samples_per_item == protocol_of("ifbench").samples_per_item == 10
    assert protocol_of("mbpp_plus").samples_per_item == 3
    assert protocol_of("gsm8k").temperature == 0.0 and protocol_of("ifeval").temperature > 0


def jsonl(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted(monkeypatch)
    long = "Write a story about a keeper of a lighthouse who finds a message in a green bottle one day."
    rows = [
        {"id": f"i{k}", "prompt": text, "requirements": ["punctuation:no_comma"]}
        for k, text in enumerate([long, "Name a red fox."])
    ]
    mine = jsonl(tmp_path / "mine.jsonl", rows)
    assert (
        run_command(["evaluate", str(base_dir()), "--suite", str(mine), "--out", str(tmp_path / "out")]) == 0
    )
    assert "1.000" in capsys.readouterr().out
    assert run_command(["evaluate", str(base_dir()), "--suite", "nothing"]) == 2
    assert run_command(["evaluate", str(tmp_path / "none"), "--suite", str(mine)]) == 2
    assert "no such folder" in capsys.readouterr().err

    turns = [
        [{"role": "user", "content": long}, {"role": "assistant", "content": "Once."}],
        [{"role": "user", "content": "Tell me a joke."}, {"role": "assistant", "content": "No."}],
    ]
    pool = jsonl(tmp_path / "pool.jsonl", [{"messages": t} for t in turns])
    clean = tmp_path / "clean"
    command = ["decontaminate", str(pool), "--against", str(mine), "--json", "--out", str(clean)]
    assert run_command(command) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["rows"], report["contaminated"], report["hits"][0]["items"]) == (2, 1, ["i0"])
    assert run_command(["decontaminate", str(clean / "pool.parquet"), "--against", str(mine), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["contaminated"] == 0
    assert run_command(["decontaminate", str(pool)]) == 2
    assert run_command(["decontaminate", str(pool), "--against", str(mine), "--rule", "some"]) == 2
    assert "half, any13, any8" in capsys.readouterr().err

    campaign = tmp_path / "runs/c"
    assert run_command(["holdout", "seal", str(campaign), "--suite", str(mine)]) == 0
    sealed = next((campaign.parent / ".sealed").glob("*/twin-1"))
    assert not [p for p in campaign.rglob("*") if p.is_file() and "lighthouse" in p.read_text()]
    capsys.readouterr()
    assert run_command(["decontaminate", str(pool), "--sealed", str(sealed), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["by_suite"] == {"held_out": 1} and report["hits"] == []
    assert run_command(["evaluate", str(base_dir()), "--suite", str(sealed / "items.jsonl")]) == 2
    assert run_command(["holdout", "score", str(campaign)]) == 2
    other = jsonl(tmp_path / "other.jsonl", [{**rows[1], "prompt": "Name a blue hen."}])
    assert run_command(["holdout", "seal", str(campaign), "--suite", str(other)]) == 2
    assert (
        run_command(["holdout", "seal", str(tmp_path / "d"), "--suite", str(mine), "--dev", str(mine)]) == 2
    )
