"""Evaluation suites: one file a suite, each with `load(**settings) -> Suite`, named in a closed listing."""

from __future__ import annotations

import difflib
import importlib
import inspect
from typing import Any

from autosft.errors import SuiteError
from autosft.evals.suites.suite import Suite, read_items, write_items

SUITES: dict[str, str] = {
    "lab": "autosft.evals.suites.lab",
    "ifeval": "autosft.evals.suites.ifeval",
    "ifbench": "autosft.evals.suites.ifbench",
    "mbpp_plus": "autosft.evals.suites.mbpp_plus",
    "humaneval": "autosft.evals.suites.humaneval",
    "gsm8k": "autosft.evals.suites.gsm8k",
    "jsonl": "autosft.evals.suites.jsonl",
}


def load_suite(name: str, /, **settings: Any) -> Suite:
    """Load a suite by its name in `SUITES`.

    Args:
        name: A key of `SUITES`; nothing else is ever imported.
        **settings: Passed to the suite's `load`, e.g. `path=` for `jsonl`.

    Raises:
        SuiteError: The name is not listed, a setting is unknown or missing, or the suite cannot be read.
    """
    if name not in SUITES:
        near = difflib.get_close_matches(str(name), SUITES, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known suites: {', '.join(SUITES)}"
        raise SuiteError(
            f"no suite named {name!r}", hint=f"{hint}; a JSONL file of your own loads as 'jsonl'"
        )
    load = importlib.import_module(SUITES[name]).load
    try:
        inspect.signature(load).bind(**settings)
    except TypeError as error:
        known = ", ".join(inspect.signature(load).parameters)
        raise SuiteError(
            f"settings do not fit: {error}", where=f"suite {name}", hint=f"takes: {known}"
        ) from None
    suite = load(**settings)
    assert isinstance(suite, Suite)
    return suite


__all__ = ["SUITES", "Suite", "load_suite", "read_items", "write_items"]
