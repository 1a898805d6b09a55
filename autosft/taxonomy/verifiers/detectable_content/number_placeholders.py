"""The response holds at least N placeholders in square brackets, such as [address]."""

from __future__ import annotations

import re

from autosft.taxonomy.verifiers.example import Example

EXAMPLE = Example("Dear [name], meet me at [place].", "Dear [name], meet me.", {"num_placeholders": 2})
# As '\[.*?\]', without scanning a line again for each '[' that is never closed.
PLACEHOLDER = re.compile(r"\[[^\]\n]*\]")


def check(prompt: str, response: str, *, num_placeholders: int) -> bool:
    """Return whether '[...]' occurs `num_placeholders` times or more."""
    return len(PLACEHOLDER.findall(response)) >= num_placeholders
