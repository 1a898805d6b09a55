"""A worker process as its starter sees it: started in its own group, watched, timed, killed as a group."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

import autosft
from autosft.executor.failure import TIMEOUT, cause_of_exit, kernel_oom_kills
from autosft.executor.progress import ProgressReader
from autosft.executor.stages import Job

_SECRET_WORDS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL")


class Worker:
    """One attempt at a job.

    Args:
        job: What to run.
        stem: Path without suffix for spec, progress, result and log.
        threads: Compute threads.
        attempt: Number of the attempt, from 1.
    """

    def __init__(self, job: Job, stem: Path, threads: int, attempt: int) -> None:
        paths = {
            kind: stem.with_name(f"{stem.name}.{attempt}.{kind}")
            for kind in ("spec", "progress", "result", "log")
        }
        for path in paths.values():
            path.unlink(missing_ok=True)
        self.job = replace(
            job,
            parent=os.getpid(),
            progress=str(paths["progress"].absolute()),
            result=str(paths["result"].absolute()),
        )
        self.log = paths["log"]
        self._result = paths["result"]
        self._reader = ProgressReader(paths["progress"])
        paths["spec"].write_bytes(orjson.dumps(self.job.to_json(), option=orjson.OPT_INDENT_2))
        self._timed_out = False
        self._oom_before = kernel_oom_kills()
        self._started = time.monotonic()
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "autosft.executor.worker", str(paths["spec"].absolute())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=worker_environment(os.environ, threads),
                start_new_session=True,
            )

    def new_lines(self) -> list[dict[str, Any]]:
        """Return progress lines since the last call."""
        return self._reader.new_lines()

    def ended(self) -> bool:
        """Whether the process is over; one that overran its time is killed first."""
        if self._process.poll() is not None:
            return True
        if time.monotonic() - self._started > self.job.train.timeout_s:
            self._timed_out = True
            self.kill()
            return True
        return False

    def kill(self) -> None:
        """Kill the process and everything it started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def outcome(self) -> tuple[str, str]:
        """Return (cause, detail) of an ended process; both empty on success."""
        with suppress(ProcessLookupError, PermissionError):
            # Its children, if it left any.
            os.killpg(self._process.pid, signal.SIGKILL)
        if self._timed_out:
            return TIMEOUT, f"took longer than {self.job.train.timeout_s:g} s"
        try:
            result = orjson.loads(self._result.read_bytes())
            return str(result["cause"]), str(result["detail"])
        except (OSError, ValueError, KeyError, TypeError):
            return cause_of_exit(self._process.returncode, kernel_oom_kills() - self._oom_before)


def worker_environment(environment: Mapping[str, str], threads: int) -> dict[str, str]:
    """Return a worker's environment: no secrets, a fixed number of compute threads, no network look-ups.

    A worker trains on text of any origin and needs no account of anyone's.
    """
    kept = {
        name: value
        for name, value in environment.items()
        if not any(word in name.upper() for word in _SECRET_WORDS)
    }
    # The worker runs the starter's own copy of the package, whatever the working directory.
    paths = [str(Path(autosft.__file__).resolve().parent.parent), environment.get("PYTHONPATH", "")]
    fixed = {
        "PYTHONPATH": os.pathsep.join(p for p in paths if p),
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONUNBUFFERED": "1",
    }
    return {**kept, **thread_counts(threads), **fixed}


def thread_counts(threads: int) -> dict[str, str]:
    """Return the environment variables that fix the number of compute threads."""
    return dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
