"""Jobs on a Ray cluster: one detached actor an attempt, which starts the job's process on its node.

A detached actor outlives the runner that made it; the next runner finds it by its name. Options: `address`,
as for `ray.init` (default `auto`, a cluster that is already up), `resource`, what a device is called (`GPU`
by default where the cluster has some, else `CPU`). The environment's folder must lie on a file system that
all nodes share.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

# A cluster asks for its token where the user has one; a client that is given an address sends it only when
# told to, before the first import.
if "RAY_AUTH_MODE" not in os.environ and (Path.home() / ".ray" / "auth_token").exists():
    os.environ["RAY_AUTH_MODE"] = "token"

import ray
from ray.exceptions import RayError

from autosft.errors import JobError

_NAMESPACE = "autosft"


class _Attempt:
    """Holds an attempt's devices and its process."""

    def __init__(self, folder: str, attempt: int, path: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "autosft.executor.jobs.shell", folder, str(attempt)],
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,
        )

    def running(self) -> bool:
        """Whether the process is at work."""
        return self._process.poll() is None

    def stop(self) -> None:
        """Kill the process and what it started."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)


class Backend:
    """Starts attempts on a Ray cluster."""

    def __init__(self, options: Mapping[str, str]) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        self._resource = options.get("resource", "")
        address = options.get("address", "auto")
        try:
            _knock(address)
            ray.init(
                address=address, namespace=_NAMESPACE, log_to_driver=False, configure_logging=False,
                ignore_reinit_error=True,
            )  # fmt: skip
        except (RayError, OSError, RuntimeError, ValueError) as error:
            raise JobError(
                f"no Ray cluster at {address!r} ({str(error)[:200]})", where="executor.options",
                hint="`ray start --head` starts one; address=HOST:PORT names it",
            ) from None  # fmt: skip

    def start(self, folder: Path, attempt: int, devices: int, held: tuple[int, ...]) -> str:
        """Start an attempt's actor; it waits where the cluster has no free devices."""
        del held
        name = f"{folder.name}-{attempt}"
        kind = self._resource or ("GPU" if ray.cluster_resources().get("GPU") else "CPU")
        need: dict[str, Any] = {"num_gpus": devices} if kind == "GPU" else {"num_cpus": devices}
        if kind not in ("GPU", "CPU"):
            need = {"resources": {kind: devices}}
        try:
            ray.remote(_Attempt).options(
                name=name, lifetime="detached", max_restarts=0, get_if_exists=True, **need
            ).remote(str(folder), attempt, os.environ.get("PYTHONPATH", ""))
        except (RayError, ValueError) as error:
            raise JobError(f"Ray does not take the job: {error}", where="executor.backend=ray") from None
        return name

    def alive(self, handle: str) -> bool:
        """Whether the actor is there and its process at work; one that waits for a node counts."""
        try:
            actor = ray.get_actor(handle, namespace=_NAMESPACE)
            found: bool = ray.get(actor.running.remote(), timeout=5)
        except ray.exceptions.GetTimeoutError:
            return True
        except (RayError, ValueError):
            return False
        if not found:
            self._forget(actor)
        return found

    def stop(self, handle: str) -> None:
        """Kill the process and its actor."""
        try:
            actor = ray.get_actor(handle, namespace=_NAMESPACE)
        except ValueError:
            return
        with suppress(RayError):
            ray.get(actor.stop.remote(), timeout=5)
        self._forget(actor)

    def _forget(self, actor: Any) -> None:
        with suppress(RayError, ValueError):
            ray.kill(actor)


def _knock(address: str) -> None:
    """Raise OSError where nothing listens: `ray.init` would wait for minutes."""
    host, colon, port = address.rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host, int(port)), timeout=10).close()
