"""The embedded default: a tiny base model, a pool with planted defects, and a suite, all of one world."""

from __future__ import annotations

import importlib
from typing import Any

_API = {
    "LabProgram": "autosft.lab.program",
    "Manifest": "autosft.lab.pool",
    "base_dir": "autosft.lab.base",
    "make_pool": "autosft.lab.pool",
}
__all__ = list(_API)


def __getattr__(name: str) -> Any:
    # Loaded on first use: facts are looked up by verifiers, which must not pay for pools and models.
    if name not in _API:
        raise AttributeError(f"module 'autosft.lab' has no attribute {name!r}")
    return getattr(importlib.import_module(_API[name]), name)
