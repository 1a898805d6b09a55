"""Jobs on a Slurm cluster, submitted with submitit.

The environment's folder must lie on a file system that all nodes share. Options are submitit's parameters
(`slurm_partition=gpu`, `gpus_per_node=8`, `timeout_min=600`), and `cluster=local`, which runs submitit's
own stand-in for Slurm on this machine. Tested with that stand-in; the path through `sbatch`, `sacct` and
`scancel` is untested here: `pytest --slurm` checks it where there is a cluster.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import psutil
import submitit

from autosft.errors import JobError
from autosft.executor.jobs.shell import main as run_attempt

#: States in which an attempt may still come to an end of its own.
_ALIVE = frozenset(
    {"PENDING", "RUNNING", "CONFIGURING", "COMPLETING", "REQUEUED", "RESIZING", "SUSPENDED", "UNKNOWN"}
)


class Backend:
    """Submits attempts to Slurm."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = {key: int(value) if value.isdigit() else value for key, value in options.items()}
        self._cluster = str(self._options.pop("cluster", "slurm"))

    def start(self, folder: Path, attempt: int, devices: int, held: tuple[int, ...]) -> str:
        """Submit an attempt.

        Raises:
            JobError: Slurm is not here, or does not take the job.
        """
        del held
        try:
            executor = submitit.AutoExecutor(folder=folder / "submitit", cluster=self._cluster)
            wanted: dict[str, Any] = {"name": f"autosft-{folder.name}", "timeout_min": 60 * 24}
            if self._cluster == "slurm":
                wanted |= {"tasks_per_node": 1, "gpus_per_node": devices}
            executor.update_parameters(**{**wanted, **self._options})
            job = executor.submit(run_attempt, folder, attempt)
        except Exception as error:
            # submitit raises errors of many kinds for a missing sbatch or a refused submission.
            raise JobError(
                f"Slurm does not take the job: {str(error)[:300]}", where="executor.backend=slurm",
                hint="check executor.options and whether `sbatch` works here",
            ) from None  # fmt: skip
        process = getattr(job, "_process", None)
        return orjson.dumps(
            {"job": job.job_id, "folder": str(folder / "submitit"), "pid": process.pid if process else None}
        ).decode()

    def alive(self, handle: str) -> bool:
        """Whether Slurm has the job in a state that may still change."""
        known = orjson.loads(handle)
        if known["pid"] is not None:
            with suppress(psutil.Error, ChildProcessError):
                if psutil.Process(known["pid"]).status() != psutil.STATUS_ZOMBIE:
                    return True
                os.waitpid(known["pid"], os.WNOHANG)
            return False
        state = submitit.SlurmJob(folder=known["folder"], job_id=known["job"]).state
        return str(state).split(" ")[0] in _ALIVE

    def stop(self, handle: str) -> None:
        """Cancel the job."""
        known = orjson.loads(handle)
        if known["pid"] is not None:
            with suppress(psutil.Error):
                process = psutil.Process(known["pid"])
                for member in [*process.children(recursive=True), process]:
                    with suppress(psutil.Error):
                        member.send_signal(signal.SIGKILL)
            return
        submitit.SlurmJob(folder=known["folder"], job_id=known["job"]).cancel(check=False)
