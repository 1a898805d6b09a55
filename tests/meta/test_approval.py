"""Decisions that wait for a person, and campaigns that are held: through the command, by real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from autosft.errors import CampaignError
from autosft.meta.approval import REQUESTS, hold, judge, pending, release
from tests.campaigns import command, journal, run_cli

pytestmark = pytest.mark.slow
DEADLINE_S = 120


def wait_for(true: Callable[[], object], process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + DEADLINE_S
    while not true():
        assert process.poll() is None, "the campaign ended"
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.2)


def is_waiting(out: Path) -> bool:
    try:
        return pending(out) is not None
    except CampaignError:
        return False


def start(out: Path, *settings: str) -> subprocess.Popen[bytes]:
    log = out.with_suffix(".log").open("ab")
    return subprocess.Popen(command(out, *settings), stdout=log, stderr=log, start_new_session=True)


def words(out: Path) -> list[dict[str, object]]:
    lines = (out / "journal.jsonl").read_text().splitlines()
    return [e["data"] for e in map(json.loads, lines) if e["kind"] == "decision.judged"]


def test_a_rejected_decision_is_taken_anew_and_a_kill_while_waiting_loses_nothing(tmp_path: Path) -> None:
    out = tmp_path / "tiny"
    settings = ("campaign.rounds=1", "campaign.approve=true")
    process = start(out, *settings)
    wait_for(lambda: is_waiting(out), process)
    first = pending(out)
    assert first is not None and first["round"] == 1
    assert "hypothesis.registered" not in [kind for kind, key, _ in journal(out) if key == "1"]
    with pytest.raises(CampaignError, match="needs a reason"):
        judge(out, approve=False)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process = start(out, *settings)
    wait_for(lambda: is_waiting(out), process)
    said = run_cli("reject", str(out), "--reason", "too many rows of one kind", "--by", "ada")
    assert said.returncode == 0, said.stderr
    wait_for(lambda: is_waiting(out) and pending(out)["decision"] != first["decision"], process)  # type: ignore[index]
    rejected = {p["analyst"] for p in first["accepted"]}
    second = pending(out)
    assert second is not None and not rejected & {p["analyst"] for p in second["accepted"]}
    assert run_cli("approve", str(out)).returncode == 0
    assert process.wait(DEADLINE_S) == 0
    assert [(w["approved"], w["by"]) for w in words(out)] == [(False, "ada"), (True, "operator")]
    assert not list((out / REQUESTS).glob("*.json")), "words are in the journal now"
    late = run_cli("approve", str(out))
    assert late.returncode == 2 and "no decision waits" in late.stderr


def test_when_everything_is_rejected_the_campaign_ends_and_says_so(tmp_path: Path) -> None:
    out = tmp_path / "tiny"
    process = start(out, "campaign.rounds=1", "campaign.approve=true", "components=base")
    while process.poll() is None:
        if is_waiting(out):
            judge(out, approve=False, reason="no")
        time.sleep(0.2)
    assert process.returncode == 0
    status = json.loads(run_cli("status", str(out), "--json").stdout)
    assert status["stop_reason"] == "every proposal was rejected" and status["rounds_recorded"] == 1


def test_a_held_campaign_waits_and_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "tiny"
    process = start(out, "campaign.rounds=1")
    wait_for((out / "campaign.json").exists, process)
    assert run_cli("pause", str(out)).returncode == 0
    wait_for(lambda: "held;" in out.with_suffix(".log").read_text(), process)
    before = journal(out)
    time.sleep(2)
    assert process.poll() is None and journal(out) == before
    assert "goes on" in run_cli("resume", str(out)).stdout
    assert process.wait(DEADLINE_S) == 0
    assert not release(out)
    with pytest.raises(CampaignError):
        hold(tmp_path / "nothing")


def test_rubbish_in_the_place_of_a_word_is_thrown_away(tmp_path: Path) -> None:
    out = tmp_path / "tiny"
    process = start(out, "campaign.rounds=1", "campaign.approve=true")
    wait_for(lambda: is_waiting(out), process)
    waiting = pending(out)
    assert waiting is not None
    word = out / REQUESTS / f"word-{waiting['decision']}.json"
    word.write_text('{"approved"')
    wait_for(lambda: not word.exists(), process)
    assert is_waiting(out)
    judge(out, approve=True)
    assert process.wait(DEADLINE_S) == 0
