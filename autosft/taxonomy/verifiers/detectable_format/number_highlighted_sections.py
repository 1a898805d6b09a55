"""The response highlights at least N parts in Markdown (*part* or **part**)."""

from __future__ import annotations

import re

from autosft.taxonomy.verifiers.example import Example

EXAMPLE = Example("It is *red* and *small*.", "It is *red* and small.", {"num_highlights": 2})
SINGLE = re.compile(r"\*[^\n*]*\*")
DOUBLE = re.compile(r"\*\*[^\n*]*\*\*")


def check(prompt: str, response: str, *, num_highlights: int) -> bool:
    """Return whether single and double highlights that hold text are `num_highlights` or more."""
    found = sum(1 for part in SINGLE.findall(response) if part.strip("*").strip())
    found += sum(1 for part in DOUBLE.findall(response) if part[2:-2].strip())
    return found >= num_highlights
