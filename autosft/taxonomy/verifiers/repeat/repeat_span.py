"""The response is the span of the request between two character positions, both included.

Source: IFBench (arXiv:2507.02833), its program as of August 2026.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example

EXAMPLE = Example("fox", "the fox", {"prompt_to_repeat": "the fox is red", "n_start": 4, "n_end": 6})
REQUIRES = ()


def check(prompt: str, response: str, *, prompt_to_repeat: str, n_start: int, n_end: int) -> bool:
    """Return whether it is that span, case and outer white space aside."""
    return response.strip().lower() == prompt_to_repeat[n_start : n_end + 1].strip().lower()
