"""GSM8K: 1,319 word problems with a number as their answer.

Source: "Training Verifiers to Solve Math Word Problems" (arXiv:2110.14168).
"""

from __future__ import annotations

from pathlib import Path

from autosft.errors import SuiteError
from autosft.evals.suites.sources import Source, field, first, read_source
from autosft.evals.suites.suite import Suite
from autosft.types import EvalItem, Message, Requirement

SOURCE = Source(
    suite="gsm8k",
    files=("test.jsonl", "gsm8k_test.jsonl"),
    folders=("gsm8k",),
    hub="openai/gsm8k",
    split="test",
    origin="github.com/openai/grade-school-math, grade_school_math/data/test.jsonl",
    config="main",
)
ASK = "\n\nSolve it step by step and end with a line of the form '#### NUMBER'."


def load(path: str | Path | None = None, limit: int | None = None) -> Suite:
    """Read the suite.

    Args:
        path: Its file or a folder with it; looked up where None.
        limit: Only the first problems.

    Raises:
        SuiteError: It cannot be found or read.
    """
    rows, where = read_source(SOURCE, path)
    items = []
    for number, row in enumerate(first(rows, limit, "gsm8k")):
        question, solution = str(field(row, ("question",), where)), str(field(row, ("answer",), where))
        _, mark, answer = solution.rpartition("####")
        if not mark:
            raise SuiteError("an answer lacks its '####'", where=f"{where}, row {number + 1}")
        requirement = Requirement("answer:number", {"answer": answer.strip().replace(",", "")})
        messages = (Message("user", question + ASK),)
        items.append(
            EvalItem(f"gsm8k/{number}", "gsm8k", messages, (requirement,), "word_problem", reference=solution)
        )
    return Suite("gsm8k", tuple(items))
