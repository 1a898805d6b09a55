"""The response has exactly N words (separated by white space)."""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example

EXAMPLE = Example("The fox is red.", "The fox is small and red.", {"n": 4})


def check(prompt: str, response: str, *, n: int) -> bool:
    """Return whether there are `n` words."""
    return len(response.split()) == n
