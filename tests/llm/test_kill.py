"""A campaign under the policy llm, killed in mid-call, goes on and pays for no recorded reply twice."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time

import psutil
import pytest

from autosft.spend import Spend
from tests.campaigns import command, journal, run_cli
from tests.llm.brains import sensible
from tests.llm.servers import serving

pytestmark = pytest.mark.slow


def test_a_campaign_killed_in_mid_call_resumes_and_replays(tmp_path, monkeypatch):
    monkeypatch.setenv("TEST_LLM_KEY", "sk-very-secret-0123456789")
    hold, held = threading.Event(), threading.Event()
    n, at = [0], 4

    def brain(asked):
        n[0] += 1
        if n[0] == at and not hold.is_set():
            held.set()
            hold.wait(60)
        return sensible(asked)

    with serving(brain) as server:
        wanted = (
            "campaign.rounds=1",
            "campaign.seeds=0",
            "campaign.claim_seeds=0",
            "campaign.budget_tokens=2000",
            "policy=llm",
            f"llm.base_url={server.url}/v1",
            "llm.api_key_env=TEST_LLM_KEY",
        )
        process = subprocess.Popen(
            command(tmp_path / "a", *wanted), start_new_session=True, stdout=subprocess.DEVNULL
        )
        assert held.wait(120)
        time.sleep(0.2)
        family = [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]
        for member in family:
            os.kill(member.pid, signal.SIGKILL)
        process.wait()
        hold.set()
        open_calls = [line for line in Spend(tmp_path / "a", {})._open]
        assert open_calls, "the call in flight stays charged to its reserve"
        before = n[0]
        assert (
            subprocess.run(
                command(tmp_path / "a", *wanted), check=False, stdout=subprocess.DEVNULL
            ).returncode
            == 0
        )
        resumed = n[0] - before
        assert (
            subprocess.run(
                command(tmp_path / "b", *wanted), check=False, stdout=subprocess.DEVNULL
            ).returncode
            == 0
        )
        whole = n[0] - before - resumed
    assert journal(tmp_path / "a") == journal(tmp_path / "b")
    assert resumed < whole, "recorded replies are not asked for again"
    done = run_cli("replay", str(tmp_path / "a"))
    assert done.returncode == 0 and "Identical" in done.stdout, done.stdout + done.stderr
    shown = run_cli("llm", str(tmp_path / "a"))
    assert shown.returncode == 0 and "role:meta" in shown.stdout, shown.stdout + shown.stderr
