"""Generation by vLLM: a server's life under faults, with a stand-in of the same command line and wire format.

Where `AUTOSFT_VLLM_PYTHON` names a real one (`--live`): equal greedy answers on the lab's base.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import stat
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from autosft.errors import ConfigError, ExecutorError
from autosft.executor.generate import Generated, GenerateJob, load_generator
from autosft.executor.prompts import Prompts
from autosft.lab.base import base_dir
from autosft.types import GenerateSettings

REAL = os.environ.get("AUTOSFT_VLLM_PYTHON", "")
STOP = 2


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that behaves like vLLM's Python; returns the file that lists its starts."""
    program = tmp_path / "python"
    script = Path(__file__).with_name("stand_in_vllm.py")
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    starts = tmp_path / "starts"
    monkeypatch.setenv("AUTOSFT_VLLM_PYTHON", str(program))
    monkeypatch.setenv("STAND_IN_STATE", str(starts))
    return starts


def job(n: int = 8, samples: int = 1, temperature: float = 0.0, seed: int = 3) -> GenerateJob:
    tokens = [[10 + i, 20, 30] for i in range(n)]
    prompts = Prompts([f"i{i}" for i in range(n)], tokens, STOP, 0, base_dir())
    settings = GenerateSettings(16, 4, temperature, samples, "vllm")
    return GenerateJob(base_dir(), prompts, settings, seed, 4)


def answer(job: GenerateJob) -> list[Generated]:
    return load_generator("vllm").generate(job, lambda line: None)


def starts_of(file: Path) -> list[int]:
    return [int(line) for line in file.read_text().splitlines()]


def test_answers_come_in_order_with_samples_seeds_and_truncation(stand_in: Path) -> None:
    found = answer(job(n=6, samples=3, temperature=0.8))
    assert [(a.item, a.sample) for a in found] == [(f"i{i}", k) for i in range(6) for k in range(3)]
    assert found[4].text == f"{61}/{(3 * 1_000_003 + 1) % 2**31}/1"
    assert [a.truncated for a in found[::3]] == [(60 + i) % 5 == 0 for i in range(6)]
    assert {a.tokens for a in found} == {2}, "the end-of-turn token is not counted"
    assert answer(job(n=6, samples=3, temperature=0.8)) == found
    greedy = answer(job(n=2, samples=2))
    assert [a.text.rsplit("/", 1)[1] for a in greedy] == ["0"] * 4, "greedy samples are equal: asked once"


@pytest.mark.parametrize(
    "faults", ["crash,ok", "busy,ok", "dies,ok", "garbage,ok", "short,ok", "error,ok", "slow"]
)
def test_what_goes_wrong_once_is_mended(stand_in: Path, faults: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = answer(job())
    stand_in.unlink()
    monkeypatch.setenv("STAND_IN_FAULTS", faults)
    assert answer(job()) == whole
    pids = starts_of(stand_in)
    assert len(pids) == faults.count(",") + 1
    assert not any(psutil.pid_exists(pid) for pid in pids), "no server is left behind"


def test_a_server_that_never_works_is_given_up_with_its_last_words(
    stand_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN_FAULTS", "crash")
    with pytest.raises(ExecutorError, match=r"failed 3 times.*status 1.*no memory for the cache"):
        answer(job())
    monkeypatch.setenv("STAND_IN_FAULTS", "hang")
    monkeypatch.setenv("AUTOSFT_VLLM_REQUEST_S", "0.5")
    with pytest.raises(ExecutorError, match="timed out"):
        answer(job(n=1))
    assert not any(psutil.pid_exists(pid) for pid in starts_of(stand_in))


def asks_for_ever() -> None:
    os.environ["STAND_IN_FAULTS"] = "hang"
    answer(job())


def test_a_server_does_not_outlive_a_killed_worker(stand_in: Path) -> None:
    worker = multiprocessing.get_context("fork").Process(target=asks_for_ever)
    worker.start()
    end = time.monotonic() + 30
    while not stand_in.exists() and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(0.5)
    os.kill(worker.pid or 0, signal.SIGKILL)
    worker.join(10)
    pids = starts_of(stand_in)
    while any(psutil.pid_exists(pid) for pid in pids) and time.monotonic() < end:
        time.sleep(0.05)
    assert pids and not any(psutil.pid_exists(pid) for pid in pids)


def test_prompts_that_leave_no_room_are_not_asked(stand_in: Path) -> None:
    from autosft.executor.base import check_base

    full = job(n=2)
    long = [5] * check_base(base_dir()).context
    prompts = Prompts(["full", "i1"], [long, [11, 20, 30]], STOP, 0, base_dir())
    found = answer(GenerateJob(full.checkpoint, prompts, full.settings, 3, 4))
    assert (found[0].text, found[0].truncated, found[0].tokens) == ("", True, 0) and found[1].text


@pytest.mark.parametrize(
    ("value", "words"), [("", "environment of its own"), ("/no/such/python", "cannot be run")]
)
def test_a_missing_environment_is_named_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, value: str, words: str
) -> None:
    monkeypatch.setenv("AUTOSFT_VLLM_PYTHON", value)
    for backend in ("vllm", "vllm-offline"):
        with pytest.raises(ConfigError, match=f"{words}.*set_up_vllm"):
            load_generator(backend).generate(job(), lambda line: None)


@pytest.mark.live
@pytest.mark.skipif(not REAL, reason="AUTOSFT_VLLM_PYTHON names no environment with vLLM")
@pytest.mark.parametrize("backend", ["vllm", "vllm-offline"])
def test_a_real_server_answers_as_the_native_decoder_does(backend: str) -> None:
    from autosft.evals import load_suite
    from autosft.pool import RowEncoder

    encoder = RowEncoder(base_dir(), 256)
    items = load_suite("lab", seed=0, prompts_per_leaf=4).items
    prompts = Prompts(
        [item.id for item in items],
        [encoder.encode_prompt(item.messages) for item in items],
        encoder.end_of_turn_id,
        encoder.pad_id,
        base_dir(),
    )
    settings = GenerateSettings(32, 64, 0.0, 1, backend)
    found = load_generator(backend).generate(GenerateJob(base_dir(), prompts, settings, 0, 64), print)
    own: Any = load_generator("transformers").generate(
        GenerateJob(base_dir(), prompts, settings, 0, 64), lambda line: None
    )
    same = sum(a.text == b.text for a, b in zip(found, own, strict=True))
    # Two float32 kernels may part where two tokens are as good as equal.
    assert same >= 0.97 * len(items), f"{same} of {len(items)} equal"
