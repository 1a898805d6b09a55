"""IFBench: 300 prompts with 344 instructions of 58 kinds that no training set teaches.

Source: "Generalizing Verifiable Instruction Following" (arXiv:2507.02833).
"""

from __future__ import annotations

from pathlib import Path

from autosft.evals.suites.instructions import instruction_suite
from autosft.evals.suites.sources import Source, first, read_source
from autosft.evals.suites.suite import Suite

SOURCE = Source(
    suite="ifbench",
    files=("IFBench_test.jsonl", "IFBench_test.300.jsonl"),
    folders=("ifbench",),
    hub="allenai/IFBench_test",
    split="train",
    origin="github.com/allenai/IFBench, data/IFBench_test.jsonl",
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
    return instruction_suite("ifbench", first(rows, limit, "ifbench"), where)
