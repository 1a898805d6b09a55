"""The meta agent: campaigns, rounds, decisions, claims."""

from __future__ import annotations

from typing import Any

__all__ = ["resume_campaign", "run_campaign", "views"]


def __getattr__(name: str) -> Any:
    # Loaded on first use: reading commands must not pay for the graph and the executor.
    import importlib

    if name in ("run_campaign", "resume_campaign"):
        return getattr(importlib.import_module("autosft.meta.run"), name)
    if name == "views":
        return importlib.import_module("autosft.meta.views")
    raise AttributeError(name)
