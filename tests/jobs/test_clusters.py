"""The queue on clusters: submitit (its local stand-in for Slurm) and a real Ray cluster on this machine."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from autosft.executor.jobs import JobQueue, RunnerSettings
from autosft.executor.jobs.queue import CANCELLED, DONE, FAILED, RUNNING
from tests.campaigns import command, journal
from tests.jobs.test_queue import holders, python, runners, until

pytestmark = pytest.mark.slow
SLEEP = python("import time; time.sleep(60)")


def serve_jobs(queue: JobQueue, folder: Path) -> None:
    """One job that works, one that is lost and started again, one that is cancelled, a runner that dies."""
    good = queue.submit("x", python("print('on the cluster', flush=True)"))
    assert queue.wait(good, 120).state == DONE and "on the cluster" in queue.read_log(good)[0]
    flag = folder / "flag"
    code = f"""
import pathlib, time
flag = pathlib.Path({str(flag)!r})
if flag.exists(): raise SystemExit(0)
flag.touch(); time.sleep(60)
"""
    lost = queue.submit("x", python(code))
    until(flag.exists, 180)
    for process in holders(queue, lost):
        process.kill()
    done = queue.wait(lost, 120)
    assert done.state == DONE and done.attempts == 2
    gone = queue.submit("x", SLEEP)
    until(lambda: queue.get(gone).state == RUNNING and queue.get(gone).handle, 180)
    until(lambda: holders(queue, gone), 120)
    queue.cancel(gone)
    assert queue.wait(gone, 60).state == CANCELLED
    late = queue.submit("x", python("import time; time.sleep(4); print('survived')"))
    until(lambda: queue.get(late).state == RUNNING and queue.get(late).handle, 180)
    for process in runners(queue):
        process.send_signal(signal.SIGKILL)
    done = queue.wait(late, 120)
    assert (done.state, done.attempts) == (DONE, 1) and "survived" in queue.read_log(late)[0]


def test_jobs_through_submitit(tmp_path):
    pytest.importorskip("submitit", reason="needs the extra `slurm`")
    serve_jobs(JobQueue(tmp_path / "jobs", RunnerSettings("slurm", 4, ("cluster=local",), 1.0)), tmp_path)


@pytest.mark.slurm
def test_jobs_through_slurm(tmp_path_factory):
    """Needs `sbatch`; the folder must lie where the nodes see it: pytest --basetemp=SHARED."""
    folder = tmp_path_factory.mktemp("slurm")
    serve_jobs(JobQueue(folder / "jobs", RunnerSettings("slurm", 4, ("gpus_per_node=0",), 5.0)), folder)


def test_without_slurm_a_job_fails_with_a_reason(tmp_path):
    pytest.importorskip("submitit", reason="needs the extra `slurm`")
    if shutil.which("sbatch"):
        pytest.skip("there is a Slurm here")
    queue = JobQueue(tmp_path / "jobs", RunnerSettings("slurm", 4, ("cluster=slurm",), 1.0))
    record = queue.wait(queue.submit("x", SLEEP), 60)
    assert record.state == FAILED and "Slurm" in record.cause


@pytest.fixture
def ray_address(tmp_path, monkeypatch):
    pytest.importorskip("ray", reason="needs the extra `ray`")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    ray = [sys.executable, "-m", "ray.scripts.scripts"]
    temporary = Path("/tmp") / f"ray-{os.getpid()}"  # its sockets allow no long path
    start = ["start", "--head", "--port=0", "--num-cpus=2", "--include-dashboard=false",
             "--disable-usage-stats", f"--temp-dir={temporary}",
             "--object-store-memory=80000000"]  # fmt: skip
    result = subprocess.run([*ray, *start], capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    address = (temporary / "ray_current_cluster").read_text()
    yield address
    # `ray stop` would end every cluster of this machine, those of other tests too.
    for _ in range(3):
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if str(temporary) in " ".join(process.cmdline()):
                    process.kill()
        time.sleep(0.5)
    shutil.rmtree(temporary, ignore_errors=True)


def test_jobs_on_a_ray_cluster(tmp_path, ray_address):
    serve_jobs(
        JobQueue(tmp_path / "jobs", RunnerSettings("ray", 2, (f"address={ray_address}",), 1.0)), tmp_path
    )


def test_without_a_ray_cluster_a_job_fails_with_a_reason(tmp_path):
    pytest.importorskip("ray", reason="needs the extra `ray`")
    queue = JobQueue(tmp_path / "jobs", RunnerSettings("ray", 2, ("address=127.0.0.1:1",), 1.0))
    record = queue.wait(queue.submit("x", SLEEP), 120)
    assert record.state == FAILED and "no Ray cluster" in record.cause


def test_a_campaign_on_ray_survives_the_death_of_a_ray_worker(tmp_path, ray_address):
    settings = ("campaign.rounds=0", "executor=ray", f"executor.options=[address={ray_address}]")
    out, calm = tmp_path / "tiny", tmp_path / "calm"
    assert (
        subprocess.run(command(calm, "campaign.rounds=0"), check=False, capture_output=True).returncode == 0
    )
    process = subprocess.Popen(command(out, *settings), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    queue = JobQueue(out / "jobs")
    name = until(lambda: [r.id for r in queue.jobs(RUNNING) if holders(queue, r.id)], 240)[0]
    shell = holders(queue, name)[0]
    actor = shell.parent()
    assert actor is not None and "ray::" in " ".join(actor.cmdline())
    actor.kill()
    shell.kill()
    assert process.wait(400) == 0
    assert journal(out) == journal(calm)
    assert max(record.attempts for record in queue.jobs()) == 2
