"""One writer a campaign: an advisory lock that the kernel drops when its holder dies, however it dies."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import IO

from autosft.errors import CampaignLockedError

LOCK = ".lock"


class CampaignLock:
    """Context manager that holds a campaign folder for one process.

    Raises:
        CampaignLockedError: On entry, when another process holds it.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOCK
        self._stream: IO[str] | None = None

    def __enter__(self) -> CampaignLock:
        stream = self._path.open("a+")
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            stream.seek(0)
            holder = stream.read().strip() or "unknown"
            stream.close()
            raise CampaignLockedError(
                f"process {holder} is working on this campaign",
                where=str(self._path.parent),
                hint="wait for it, or stop it; reading commands such as `autosft status` work meanwhile",
            ) from None
        stream.seek(0)
        stream.truncate()
        stream.write(str(os.getpid()))
        stream.flush()
        self._stream = stream
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stream is not None:
            self._stream.truncate(0)  # a reader takes the number in it for a running process
            self._stream.close()
            self._stream = None
