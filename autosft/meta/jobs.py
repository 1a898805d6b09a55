"""A campaign's queue of jobs, where its runs go through one."""

from __future__ import annotations

from pathlib import Path

from autosft.config import Config
from autosft.executor.jobs import JobQueue, RunnerSettings

JOBS = "jobs"


def job_queue(folder: Path, config: Config) -> JobQueue | None:
    """Return the queue in a campaign's folder, or None where its runs are its own children."""
    executor = config.executor
    if executor.backend == "direct":
        return None
    # On a cluster the queue of the cluster does the waiting.
    slots = executor.worker_slots(10**6) if executor.backend == "local" else executor.slots or 64
    return JobQueue(folder / JOBS, RunnerSettings(executor.backend, slots, executor.options))
