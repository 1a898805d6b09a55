"""SIGKILL of a whole campaign at random moments loses, repeats and changes nothing (I10)."""

import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest

from tests.campaigns import command, completions, journal

pytestmark = pytest.mark.slow

KILLS = 10


def _start(out: Path, log: Path) -> subprocess.Popen:
    with log.open("ab") as stream:
        return subprocess.Popen(command(out), stdout=stream, stderr=stream, start_new_session=True)


def _kill_tree(process: subprocess.Popen) -> None:
    """SIGKILL the process and every descendant, as an operator's `kill -9` or a lost node would."""
    try:
        family = [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]
    except psutil.NoSuchProcess:
        return
    for member in family:
        try:
            os.kill(member.pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    process.wait()


def test_ten_random_kills_change_nothing(tmp_path):
    log = tmp_path / "log"
    begin = time.monotonic()
    assert _start(tmp_path / "whole", log).wait(timeout=600) == 0, log.read_text()[-2000:]
    whole_s = time.monotonic() - begin
    seed = int(os.environ.get("AUTOSFT_CRASH_SEED", "0")) or time.time_ns() % 10**6
    rng = random.Random(seed)
    killed = 0
    for _ in range(KILLS):
        process = _start(tmp_path / "killed", log)
        # Later starts have less left to do, so the moments spread over the campaign as it advances.
        deadline = time.monotonic() + rng.uniform(0.5, whole_s * 0.45)
        while time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.05)
        if process.poll() is None:
            _kill_tree(process)
            killed += 1
        else:
            assert process.returncode == 0, log.read_text()[-2000:]
    assert killed >= 3, f"the campaign was too quick to be killed (crash seed {seed})"
    assert _start(tmp_path / "killed", log).wait(timeout=600) == 0, log.read_text()[-2000:]
    assert journal(tmp_path / "killed") == journal(tmp_path / "whole"), f"crash seed {seed}"
    twice = {step: n for step, n in Counter(completions(tmp_path / "killed")).items() if n > 1}
    assert not twice, f"steps done twice (crash seed {seed}): {twice}"
    assert set(completions(tmp_path / "killed")) == set(completions(tmp_path / "whole"))
    assert not list((tmp_path / "killed" / "artifacts" / "staging").glob("*"))
