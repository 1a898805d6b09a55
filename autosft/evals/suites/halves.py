"""Two halves of a suite, one to guide a campaign and one to seal."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import orjson

from autosft.artifacts import write_atomic
from autosft.errors import SuiteError
from autosft.evals.suites.suite import Suite
from autosft.identity import text_hash
from autosft.types import EvalItem


def halves(suite: Suite) -> tuple[Suite, Suite]:
    """Split a suite leaf by leaf; which item goes where depends on its text alone.

    Returns:
        (dev half, half to seal); items with the same prompt stay together.

    Raises:
        SuiteError: The suite is too small to be split.
    """
    by_leaf: dict[str, dict[str, list[EvalItem]]] = {}
    for item in suite.items:
        prompt = "\n".join(m.content for m in item.messages)
        by_leaf.setdefault(item.leaf, {}).setdefault(text_hash(prompt), []).append(item)
    dev: set[str] = set()
    for groups in by_leaf.values():
        for key in sorted(groups)[::2]:
            dev |= {item.id for item in groups[key]}
    parts = [[i for i in suite.items if (i.id in dev) is wanted] for wanted in (True, False)]
    if not all(parts):
        raise SuiteError("too few items to split", where=f"suite {suite.name}")
    return Suite(f"{suite.name}_dev", tuple(parts[0])), Suite(f"{suite.name}_sealed", tuple(parts[1]))


def write_suite(suite: Suite, path: Path) -> None:
    """Write a suite as a JSONL file that loads as the suite `jsonl`."""
    lines = []
    for item in suite.items:
        data = asdict(item)
        del data["suite"]
        lines.append(orjson.dumps(data) + b"\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, b"".join(lines))
