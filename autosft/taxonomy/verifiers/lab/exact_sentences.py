"""The response has exactly N sentences (each ended by '.', '!' or '?' before white space or the end)."""

from __future__ import annotations

import re

from autosft.taxonomy.verifiers.example import Example

EXAMPLE = Example("The fox is red. Is it small?", "The fox is red.", {"n": 2})
END = re.compile(r"[.!?]+[\"')\]”’]*(?:\s+|$)")


def check(prompt: str, response: str, *, n: int) -> bool:
    """Return whether there are `n`; a rest without an end counts, a piece without letters does not."""
    return sum(1 for piece in END.split(response) if any(c.isalnum() for c in piece)) == n
