"""MBPP+: 378 short functions, each with the tests of MBPP (base) and many more (plus).

Two published layouts are read: EvalPlus' release (`MbppPlus.jsonl`), where outputs are compared with
those of the reference solution, and the hub's (`evalplus/mbppplus`), where a script holds inputs and
results. In the first, an item's two requirements are base and plus; a strict pass is both, which is the
score of MBPP+.

Source: "Program Synthesis with Large Language Models" (arXiv:2108.07732) for MBPP, EvalPlus
(arXiv:2305.01210) for MBPP+, data of release v0.2.0.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from autosft.evals.suites.inputs import argument_kind, with_tuples
from autosft.evals.suites.sources import Source, field, first, read_source
from autosft.evals.suites.suite import Suite
from autosft.taxonomy.sandbox import encode
from autosft.types import EvalItem, Message, Requirement

SOURCE = Source(
    suite="mbpp_plus",
    files=("MbppPlus.jsonl.gz", "MbppPlus.jsonl", "MbppPlus-OriginFmt.jsonl.gz"),
    folders=("mbpp_plus", "mbpp"),
    hub="evalplus/mbppplus",
    split="test",
    origin="github.com/evalplus/mbppplus_release (MbppPlus.jsonl.gz of v0.2.0)",
)
ASK = "Write a Python script that solves this problem, in one code block.\n\n{}"
# Tasks whose outputs are compared as sets, and tasks of which only whether there is an output is compared.
AS_SETS = frozenset(
    {
        "similar_elements",
        "find_char_long",
        "common_in_nested_lists",
        "extract_singly",
        "larg_nnum",
        "intersection_array",
        "find_dissimilar",
        "Diff",
    }
)
NOT_NONE = frozenset({"check_str", "text_match_three", "text_starta_endb"})
# Readings of a task that EvalPlus counts as right beside its own reference.
ALSO_RIGHT = {
    "are_equivalent": "def are_equivalent(num1, num2):\n    return {value}",
    "sum_div": "def sum_div(number):\n    return 0",
    # The height of a pyramid as the distance from base to apex, not along its side.
    "surface_Area": (
        "def surface_Area(base, height):\n"
        "    side = ((base / 2) ** 2 + height**2) ** 0.5\n"
        "    return round(base**2 + 2 * base * side)"
    ),
    # Both numbers padded with zeros to the same number of digits.
    "digit_distance_nums": (
        "def digit_distance_nums(n1, n2):\n"
        "    width = max(len(str(n1)), len(str(n2)))\n"
        "    pairs = zip(str(n1).zfill(width), str(n2).zfill(width))\n"
        "    return sum(abs(int(a) - int(b)) for a, b in pairs)"
    ),
}


def load(path: str | Path | None = None, limit: int | None = None) -> Suite:
    """Read the suite.

    Args:
        path: Its file or a folder with it; looked up where None.
        limit: Only the first tasks.

    Raises:
        SuiteError: It cannot be found or read.
    """
    rows, where = read_source(SOURCE, path)
    rows = first(rows, limit, "mbpp_plus")
    return Suite("mbpp_plus", tuple(_hub_item(r, where) if "test" in r else _item(r, where) for r in rows))


def _item(row: dict[str, Any], where: str) -> EvalItem:
    task, entry = str(field(row, ("task_id",), where)), str(field(row, ("entry_point",), where))
    solution = str(field(row, ("canonical_solution",), where))
    number = int(task.rsplit("/", 1)[-1])
    references = [solution]
    if entry == "are_equivalent":
        # Any truth value counts; an answer that always gives the same one does not.
        references += [ALSO_RIGHT[entry].format(value=value) for value in (True, False)]
    elif entry in ALSO_RIGHT:
        references.append(ALSO_RIGHT[entry])
    compare = "set" if entry in AS_SETS else "not_none" if entry in NOT_NONE else "equal"
    base = [with_tuples(number, call) for call in field(row, ("base_input",), where)]
    plus = [with_tuples(number, call) for call in field(row, ("plus_input",), where)]
    kwargs = {"references": references, "entry_point": entry, "atol": float(row.get("atol") or 0.0)}
    topic = argument_kind(base)
    return EvalItem(
        id=task,
        suite="mbpp_plus",
        messages=(
            Message("user", ASK.format(str(field(row, ("prompt",), where)).strip().strip('"').strip())),
        ),
        requirements=tuple(
            Requirement(
                "code:reference", {**kwargs, "compare": compare, "topic": topic, "calls": _calls(calls)}
            )
            for calls in (base, plus)
        ),
        leaf=topic,
        reference=solution,
    )


def _calls(calls: list[list[Any]]) -> str:
    return json.dumps([[encode(part) for part in call] for call in calls])


def _hub_item(row: dict[str, Any], where: str) -> EvalItem:
    task = f"Mbpp/{field(row, ('task_id',), where)}"
    listed, solution = field(row, ("test_list",), where), str(field(row, ("code",), where))
    prompt = "\n".join([str(field(row, ("prompt",), where)), *listed[:1]])
    imports = "\n".join(row.get("test_imports") or [])
    scripts = (f"{imports}\n" + "\n".join(listed), str(row["test"]))
    return EvalItem(
        id=task,
        suite="mbpp_plus",
        messages=(Message("user", ASK.format(prompt)),),
        requirements=tuple(Requirement("code:tests", {"tests": script}) for script in scripts),
        leaf="function",
        reference=solution,
    )
