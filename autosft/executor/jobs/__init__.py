"""Durable jobs: a queue in a folder, a runner that serves it, backends that start processes somewhere."""

from autosft.executor.jobs.backend import BACKENDS, load_backend
from autosft.executor.jobs.queue import ACTIVE, JobQueue, JobRecord, RunnerSettings

__all__ = ["ACTIVE", "BACKENDS", "JobQueue", "JobRecord", "RunnerSettings", "load_backend"]
