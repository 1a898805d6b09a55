"""Train, convert, generate, score: one worker process a seed; only paths and a status come back."""

from __future__ import annotations

from autosft.executor.base import BaseInfo, base_fingerprint, check_base
from autosft.executor.execute import execute

__all__ = ["BaseInfo", "base_fingerprint", "check_base", "execute"]
