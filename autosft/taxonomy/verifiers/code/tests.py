"""The code of the response passes given tests.

Source: the execution-based evaluation of "Evaluating Large Language Models Trained on Code"
(arXiv:2107.03374); here tests and code run in processes of their own, and only plain values pass between
them.
"""

from __future__ import annotations

from autosft.taxonomy.sandbox import Limits, run_tests
from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.source import code_of

EXAMPLE = Example(
    "```python\ndef double(n):\n    return 2 * n\n```",
    "```python\ndef double(n):\n    return 4\n```",
    {"tests": "assert double(2) == 4\nassert double(5) == 10", "entry_point": "double"},
    "Write a function double(n).",
)
LOOSE = False
EXECUTES = True


def check(
    prompt: str, response: str, *, tests: str, entry_point: str = "", head: str = "", cpu_s: int = 10
) -> bool:
    """Return whether the tests, Python source that raises where one fails, run to their end.

    Args:
        prompt: Not looked at.
        response: Text that holds the code, fenced or bare.
        tests: Names that the code defines stand for calls to it.
        entry_point: Function that the code must define; of several blocks the last that does is taken.
        head: Source that the code may leave out, such as imports and a signature it goes on from.
        cpu_s: Processor time of the code.
    """
    code = code_of(response, entry_point, head)
    return code is not None and run_tests(code, tests, Limits(cpu_s=cpu_s)).passed
