"""kill -9 of a rank, then of torchrun, in mid-round: the campaign ends as if nothing had happened."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.campaigns import command, journal

pytest.importorskip("megatron.core", reason="needs the extra `megatron`")
pytestmark = pytest.mark.slow

SETTINGS = (
    "trainer=megatron-cpu",
    "trainer.log_every_steps=1",
    "campaign.rounds=0",
    "campaign.seeds=0",
    "campaign.claim_seeds=0",
    "campaign.budget_tokens=12000",
    "executor.retries=2",
    "holdout=none",
)
SCRIPT = Path(__file__).parents[3] / "scripts" / "run_node.sh"
RANK, LAUNCHER = "autosft.executor.train.megatron.rank", "autosft.executor.train.megatron.launch"


def processes(out: Path, module: str) -> dict[int, Path]:
    """Return process id -> folder of progress and errors, of a campaign's processes that run a module."""
    found = {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            line = process.cmdline()
            if module in line and line[-1].startswith(str(out)):
                found[process.pid] = Path(line[-1]).parent
    return found


def kill_one(out: Path, module: str, known: set[int], campaign: subprocess.Popen[bytes]) -> set[int]:
    """Kill one process of a module once its run has trained a step; return all its ranks."""
    while campaign.poll() is None:
        new = {pid: at for pid, at in processes(out, module).items() if pid not in known}
        for pid, folder in new.items():
            if (folder / "progress").exists() and (folder / "progress").stat().st_size:
                ranks = set(processes(out, RANK)) | set(processes(out, LAUNCHER))
                os.kill(pid, signal.SIGKILL)
                return ranks
        time.sleep(0.02)
    raise AssertionError("the campaign ended before anything could be killed")


def test_a_campaign_outlives_its_ranks_and_their_launcher(tmp_path):
    """The undisturbed campaign is started by the launch script."""
    settings = command(tmp_path / "calm", *SETTINGS)
    settings = settings[settings.index("run") + 1 :]
    environment = {**os.environ, "AUTOSFT": f"{sys.executable} -m autosft"}
    calm = subprocess.run(
        ["bash", str(SCRIPT), *settings], check=True, capture_output=True, timeout=600, env=environment
    )
    assert b"CUDA devices: trainer=" in calm.stderr
    out = tmp_path / "killed"
    with (tmp_path / "log").open("wb") as log:
        campaign = subprocess.Popen(command(out, *SETTINGS), stdout=log, stderr=subprocess.STDOUT)
        first = kill_one(out, RANK, set(), campaign)
        second = kill_one(out, LAUNCHER, first, campaign)
        assert campaign.wait(600) == 0
    assert len(first) == len(second - first) == 3
    text = (tmp_path / "log").read_text()
    assert text.count("killed") >= 2 and text.count("trying again") == 2
    assert journal(out) == journal(tmp_path / "calm")
    assert not [pid for pid in first | second if psutil.pid_exists(pid)]
    assert not list(out.rglob(".ranks"))
