"""The code of the response returns what reference code returns, call by call.

Source: the differential testing of EvalPlus (arXiv:2305.01210) and its comparison of outputs: equal, or
close where the reference returns floats. Here the reference's outputs never enter the process that runs
the response, and a response that returns one and the same value on calls whose right values differ fails,
whatever else holds.
"""

from __future__ import annotations

import json

from autosft.errors import VerifierError
from autosft.taxonomy.sandbox import Call, Limits, answer_calls, decode
from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.outputs import Comparison, agree, expected_replies, is_constant
from autosft.taxonomy.verifiers.source import code_of

EXAMPLE = Example(
    "```python\ndef double(n):\n    return 2 * n\n```",
    "```python\ndef double(n):\n    return 4\n```",
    {"references": ["def double(n):\n    return n + n"], "entry_point": "double", "calls": "[[2], [5]]"},
    "Write a function double(n).",
)
LOOSE = False
EXECUTES = True


def check(
    prompt: str,
    response: str,
    *,
    references: list[str],
    entry_point: str,
    calls: str,
    atol: float = 0.0,
    compare: Comparison = "equal",
    head: str = "",
    cpu_s: int = 60,
    topic: str = "",
) -> bool:
    """Return whether every call agrees with one of the references.

    Args:
        prompt: Not looked at.
        response: Text that holds the code, fenced or bare.
        references: Python sources that define `entry_point`; the first is the reference, others are
            readings of the task that are right as well.
        entry_point: The function.
        calls: JSON list of calls, each the list of its arguments as `sandbox.encode` writes them.
        atol: Absolute tolerance of numbers; 0 is exact, but 1e-6 where the reference returns floats.
        compare: `equal`; `set`: as sets; `not_none`: truth, or whether anything was returned.
        head: Source that the code may leave out.
        cpu_s: Processor time of the response's code.
        topic: What the function works on; taxonomies tell leaves apart by it, the verdict does not.

    Raises:
        VerifierError: `calls` is no such list.
    """
    try:
        arguments = [tuple(decode(part) for part in call) for call in json.loads(calls)]
    except (ValueError, TypeError) as error:
        raise VerifierError(f"calls: {error}", where="requirement code:reference") from None
    code = code_of(response, entry_point, head)
    if code is None:
        return False
    asked = [Call(entry_point, call) for call in arguments]
    found = answer_calls(code, asked, Limits(cpu_s=cpu_s))
    if not all(reply.ok for reply in found):
        return False
    wanted = [expected_replies(reference, asked) for reference in references]
    if is_constant(found) and not is_constant(wanted[0]):
        return False
    return all(
        any(right[at].ok and agree(reply.value, right[at].value, atol, compare) for right in wanted)
        for at, reply in enumerate(found)
    )
