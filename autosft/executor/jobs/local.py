"""Jobs as processes of this machine, each in a session of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import orjson
import psutil

from autosft.errors import ConfigError


class Backend:
    """Starts processes here. Takes no options."""

    def __init__(self, options: Mapping[str, str]) -> None:
        if options:
            raise ConfigError(
                f"the backend local takes no option {sorted(options)[0]!r}",
                where="executor.options",
                hint="leave it out",
            )

    def start(self, folder: Path, attempt: int, devices: int, held: tuple[int, ...]) -> str:
        """Start an attempt; where there are NVIDIA devices it sees those it holds (untested)."""
        del devices
        environment = dict(os.environ)
        if Path("/proc/driver/nvidia").exists():
            environment["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, held))
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "autosft.executor.jobs.shell", str(folder), str(attempt)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
        return orjson.dumps({"pid": process.pid, "since": psutil.Process(process.pid).create_time()}).decode()

    def alive(self, handle: str) -> bool:
        """Whether that very process is there: numbers are used again, start times are not."""
        return _process(handle) is not None

    def stop(self, handle: str) -> None:
        """Kill the attempt's process group, and what left it."""
        process = _process(handle)
        if process is None:
            return
        with suppress(psutil.Error):
            family = process.children(recursive=True)
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            for member in family:
                with suppress(psutil.Error):
                    member.kill()


def _process(handle: str) -> psutil.Process | None:
    known = orjson.loads(handle)
    try:
        process = psutil.Process(known["pid"])
        same = abs(process.create_time() - known["since"]) < 0.01
        if not same:
            return None
        if process.status() == psutil.STATUS_ZOMBIE:
            with suppress(ChildProcessError):
                os.waitpid(process.pid, os.WNOHANG)
            return None
    except psutil.Error:
        return None
    return process
