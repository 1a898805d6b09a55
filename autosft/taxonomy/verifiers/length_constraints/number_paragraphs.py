"""The response has exactly N paragraphs, separated by the Markdown divider ***."""

from __future__ import annotations

import re

from autosft.taxonomy.verifiers.example import Example

EXAMPLE = Example("It is red.\n***\nIt is small.", "It is red.\n\nIt is small.", {"num_paragraphs": 2})


def check(prompt: str, response: str, *, num_paragraphs: int) -> bool:
    """Return whether there are `num_paragraphs`; a blank one is tolerated at either end only."""
    parts = re.split(r"\s?\*\*\*\s?", response)
    blank = [index for index, part in enumerate(parts) if not part.strip()]
    if any(index not in (0, len(parts) - 1) for index in blank):
        return False
    return len(parts) - len(blank) == num_paragraphs
