"""Campaigns whose runs are jobs: the same records, and runs that outlive the campaign's process."""

from __future__ import annotations

import json
import signal
import subprocess

import pytest

from autosft.config import load_config
from autosft.executor.jobs import JobQueue
from autosft.executor.jobs.queue import DONE, QUEUED, RUNNING
from autosft.meta import run_campaign
from tests.campaigns import TINY, command, journal
from tests.jobs.test_queue import holders, runners, shell_of, until

pytestmark = pytest.mark.slow
SHORT = ("campaign.rounds=1", "executor=queue")


@pytest.fixture(scope="module")
def direct(tmp_path_factory):
    out = tmp_path_factory.mktemp("direct") / "tiny"
    run_campaign(load_config([*TINY, "campaign.rounds=1"]), out)
    return out


def test_a_campaign_killed_in_mid_run_finds_its_runs_at_work_or_done(direct, tmp_path):
    out = tmp_path / "tiny"
    process = subprocess.Popen(command(out, *SHORT), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    queue = JobQueue(out / "jobs")
    until(lambda: queue.jobs(RUNNING), 120)
    process.send_signal(signal.SIGKILL)
    process.wait()
    alone = queue.jobs(RUNNING, QUEUED)
    assert alone, "jobs go on without the campaign"
    for runner in runners(queue):
        runner.kill()
    assert subprocess.run(command(out, *SHORT), check=False, capture_output=True).returncode == 0
    records = queue.jobs()
    assert journal(out) == journal(direct)
    assert all(record.state == DONE and record.attempts == 1 for record in records), records
    lines = (out / "artifacts" / "completed.jsonl").read_text().splitlines()
    trained = [json.loads(line)["fingerprint"] for line in lines if json.loads(line)["kind"] == "train"]
    assert len(trained) == len(set(trained)), "no run was done twice"


def test_a_run_whose_process_dies_is_run_again(direct, tmp_path):
    out = tmp_path / "tiny"
    process = subprocess.Popen(command(out, *SHORT), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    queue = JobQueue(out / "jobs")
    record = until(lambda: queue.jobs(RUNNING), 120)[0]
    shell_of(queue, record.id).kill()
    until(lambda: queue.get(record.id).attempts == 2 or queue.get(record.id).state == DONE)
    assert process.wait(300) == 0
    assert journal(out) == journal(direct)
    assert max(r.attempts for r in queue.jobs()) == 2


def test_a_cancelled_run_ends_the_attempt_and_the_round_says_why(tmp_path):
    out = tmp_path / "tiny"
    process = subprocess.Popen(
        command(out, *SHORT, "campaign.budget_tokens=60000"), stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    queue = JobQueue(out / "jobs")
    for record in until(lambda: len(queue.jobs()) == 2 and queue.jobs(RUNNING) and queue.jobs(), 120):
        queue.cancel(record.id)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 2 and "cancelled" in said and "Traceback" not in said
    until(lambda: not any(holders(queue, record.id) for record in queue.jobs()))
