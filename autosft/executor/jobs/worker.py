"""A worker of a run that goes through the queue: looks like `processes.Worker`, outlives who submitted it."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from autosft.executor.failure import KILLED, TIMEOUT, cause_of_exit
from autosft.executor.jobs import runner
from autosft.executor.jobs.queue import ACTIVE, CANCELLED, FAILED, JobQueue, JobRecord
from autosft.executor.processes import thread_counts
from autosft.executor.progress import ProgressReader
from autosft.executor.stages import Job

CANCEL = "cancelled"
_LOOK_S = 0.5


def submit_run(
    job: Job, stem: Path, threads: int, attempt: int, queue: JobQueue, retries: int
) -> tuple[str, Job, Path]:
    """Submit a seed's run; return the id of its job, the run with its files, and the file of its progress.

    One that is queued or running is left as it is. The arguments are those of `QueuedWorker`.
    """
    spec, progress, result = (
        stem.with_name(f"{stem.name}.{attempt}.{kind}").absolute() for kind in ("spec", "progress", "result")
    )
    job = replace(job, parent=0, progress=str(progress), result=str(result))
    key = [job.to_json(), attempt]
    name = queue.name_of("train", key)
    if name not in {record.id for record in queue.jobs(*ACTIVE)}:
        for path in (progress, result):
            path.unlink(missing_ok=True)
        spec.write_bytes(orjson.dumps(job.to_json(), option=orjson.OPT_INDENT_2))
        queue.submit(
            "train",
            [sys.executable, "-P", "-m", "autosft.executor.worker", str(spec)],
            key=key,
            label=f"build {job.build[:8]}, seed {job.seed}",
            devices=job.train.ranks,
            retries=retries,
            timeout_s=job.train.timeout_s,
            environment=thread_counts(threads),
        )
    return name, job, progress


class QueuedWorker:
    """One seed's run as a job.

    Submitted while an equal one is queued or running (the campaign was killed and goes on), it is that one.

    Args:
        job: What to run.
        stem: Path without suffix for spec, progress and result.
        threads: Compute threads.
        attempt: Number of the attempt, from 1; names the files.
        queue: The queue.
        retries: Further attempts of the queue's own after a lost node or process.
    """

    def __init__(
        self, job: Job, stem: Path, threads: int, attempt: int, queue: JobQueue, retries: int
    ) -> None:
        self.name, self.job, progress = submit_run(job, stem, threads, attempt, queue, retries)
        self._queue, self._result = queue, Path(self.job.result)
        self.log = queue.root / self.name / "log"
        self._reader = ProgressReader(progress)
        self._looked = 0.0
        self._record: JobRecord = queue.get(self.name)

    def new_lines(self) -> list[dict[str, Any]]:
        """Return progress lines since the last call."""
        return self._reader.new_lines()

    def ended(self) -> bool:
        """Whether the job is over; a dead runner is replaced."""
        if time.monotonic() - self._looked > _LOOK_S:
            self._looked = time.monotonic()
            self._record = self._queue.get(self.name)
            if self._record.state in ACTIVE:
                self._queue.ensure_runner()
        return self._record.state not in ACTIVE

    def kill(self) -> None:
        """Leave the job to its queue: who submitted it may end and come back."""

    def outcome(self) -> tuple[str, str]:
        """Return (cause, detail) of an ended job; both empty on success."""
        record = self._record
        if record.state == CANCELLED:
            return CANCEL, "by `autosft jobs --cancel`"
        if record.state == FAILED and record.cause.startswith(runner.TIMEOUT):
            return TIMEOUT, record.cause
        if record.state == FAILED and record.cause == runner.LOST:
            return KILLED, record.cause
        try:
            result = orjson.loads(self._result.read_bytes())
            return str(result["cause"]), str(result["detail"])
        except (OSError, ValueError, KeyError, TypeError):
            code = int(record.cause.rpartition(" ")[2]) if record.cause.startswith("exit code") else 1
            return cause_of_exit(code, 0)
