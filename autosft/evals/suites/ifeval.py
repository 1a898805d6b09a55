"""IFEval: 541 prompts with 834 instructions of 25 kinds.

Source: "Instruction-Following Evaluation for Large Language Models" (arXiv:2311.07911).
"""

from __future__ import annotations

from pathlib import Path

from autosft.evals.suites.instructions import instruction_suite
from autosft.evals.suites.sources import Source, first, read_source
from autosft.evals.suites.suite import Suite

SOURCE = Source(
    suite="ifeval",
    files=("input_data.jsonl", "ifeval_input_data.jsonl"),
    folders=("ifeval",),
    hub="google/IFEval",
    split="train",
    origin="github.com/google-research/google-research, instruction_following_eval/data/input_data.jsonl",
)


def load(path: str | Path | None = None, limit: int | None = None) -> Suite:
    """Read the suite.

    Args:
        path: Its file or a folder with it; looked up where None.
        limit: Only the first prompts.

    Raises:
        SuiteError: It cannot be found or read.
    """
    rows, where = read_source(SOURCE, path)
    return instruction_suite("ifeval", first(rows, limit, "ifeval"), where)
