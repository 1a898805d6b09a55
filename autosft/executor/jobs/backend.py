"""What runs a job's process: a backend a file, named here."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from autosft.errors import ConfigError

#: Name -> module with a class `Backend`.
BACKENDS = {
    "local": "autosft.executor.jobs.local",
    "slurm": "autosft.executor.jobs.slurm",
    "ray": "autosft.executor.jobs.on_ray",
}


class Backend(Protocol):
    """Starts attempts and knows whether they are alive; how they ended stands in their exit records."""

    def start(self, folder: Path, attempt: int, devices: int, held: tuple[int, ...]) -> str:
        """Start the module `shell` on a job's folder; return a handle that outlives the runner.

        Raises:
            JobError: It cannot be started at all; says what to do.
        """
        ...

    def alive(self, handle: str) -> bool:
        """Whether the attempt may still be at work (waiting for a node counts)."""
        ...

    def stop(self, handle: str) -> None:
        """End the attempt and everything it started; one that is gone is no error."""
        ...


def load_backend(name: str, options: Mapping[str, str]) -> Backend:
    """Return a backend.

    Raises:
        ConfigError: There is none of that name, or its package is not installed.
    """
    if name not in BACKENDS:
        raise ConfigError(
            f"no job backend {name!r}", where="executor.backend", hint=f"known: {', '.join(BACKENDS)}"
        )
    try:
        module = importlib.import_module(BACKENDS[name])
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"the package {error.name!r} is not installed", where=f"executor.backend={name}",
            hint=f"pip install 'autosft[{name}]'",
        ) from None  # fmt: skip
    backend: Backend = module.Backend(options)
    return backend
