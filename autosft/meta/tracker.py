"""Tracking beside a running campaign: a process of its own, so that a slow or broken tracker costs nothing.

After each round that process is started if none runs; what it cannot send now, a later one sends.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

from autosft.config import TrackingSettings

LOG = "tracking.log"
LAST_WAIT_S = 60.0


class Tracker:
    """Sends a campaign's finished rounds while it goes on.

    Args:
        folder: Campaign folder.
        settings: Which tracker; `none` does nothing.
    """

    def __init__(self, folder: Path, settings: TrackingSettings) -> None:
        self._folder, self._settings = folder, settings
        self._process: subprocess.Popen[bytes] | None = None

    def poke(self) -> None:
        """Start sending, unless that is under way."""
        if self._settings.backend == "none" or (self._process is not None and self._process.poll() is None):
            return
        command = [sys.executable, "-m", "autosft", "track", str(self._folder)]
        if self._settings.uri:
            command += ["--uri", self._settings.uri]
        # Neither a missing folder nor a full disk may stop the campaign.
        with contextlib.suppress(OSError):
            (self._folder / "logs").mkdir(exist_ok=True)
            with (self._folder / "logs" / LOG).open("ab") as log:
                self._process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
                )

    def close(self, wait_s: float = LAST_WAIT_S) -> str | None:
        """Send the rest, for a while.

        Returns:
            What people should know: that it was not all sent; None where it was, or nothing is tracked.
        """
        if self._settings.backend == "none":
            return None
        for _ in range(2):  # the one under way may have begun before the last round ended
            with contextlib.suppress(subprocess.TimeoutExpired):
                if self._process is not None:
                    self._process.wait(wait_s)
            if self._process is not None and self._process.poll() is None:
                return f"the tracker is still at work; see {self._folder / 'logs' / LOG}"
            self.poke()
        with contextlib.suppress(subprocess.TimeoutExpired):
            if self._process is not None:
                self._process.wait(wait_s)
        if self._process is None or self._process.poll() != 0:
            return f"not everything was tracked; see {self._folder / 'logs' / LOG}, then `autosft track DIR`"
        return None
