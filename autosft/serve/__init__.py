"""The live page: one or several campaigns in a browser, while they run and after."""

from __future__ import annotations

from typing import Any

__all__ = ["create_app", "run_server"]


def __getattr__(name: str) -> Any:
    # FastAPI is loaded when a page is served, not before.
    import importlib

    if name == "create_app":
        return importlib.import_module("autosft.serve.app").create_app
    if name == "run_server":
        return importlib.import_module("autosft.serve.server").run_server
    raise AttributeError(name)
