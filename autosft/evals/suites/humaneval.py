"""HumanEval: 164 functions to write from their signature and description.

Source: "Evaluating Large Language Models Trained on Code" (arXiv:2107.03374).
"""

from __future__ import annotations

from pathlib import Path

from autosft.evals.suites.sources import Source, field, first, read_source
from autosft.evals.suites.suite import Suite
from autosft.types import EvalItem, Message, Requirement

SOURCE = Source(
    suite="humaneval",
    files=("HumanEval.jsonl.gz", "HumanEval.jsonl"),
    folders=("humaneval",),
    hub="openai/openai_humaneval",
    split="test",
    origin="github.com/openai/human-eval, data/HumanEval.jsonl.gz",
)
ASK = "Complete this Python function and give the whole of it in a code block.\n\n```python\n{}```"


def load(path: str | Path | None = None, limit: int | None = None) -> Suite:
    """Read the suite.

    Args:
        path: Its file or a folder with it; looked up where None.
        limit: Only the first tasks.

    Raises:
        SuiteError: It cannot be found or read.
    """
    rows, where = read_source(SOURCE, path)
    items = []
    for row in first(rows, limit, "humaneval"):
        head, entry = str(field(row, ("prompt",), where)), str(field(row, ("entry_point",), where))
        tests = f"{field(row, ('test',), where)}\ncheck({entry})\n"
        items.append(
            EvalItem(
                id=str(field(row, ("task_id",), where)),
                suite="humaneval",
                messages=(Message("user", ASK.format(head)),),
                requirements=(
                    Requirement("code:tests", {"tests": tests, "entry_point": entry, "head": head}),
                ),
                leaf="function",
                reference=head + str(field(row, ("canonical_solution",), where)),
            )
        )
    return Suite("humaneval", tuple(items))
