"""The response holds at least N placeholders in square brackets, such as [address]."""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example

EXAMPLE = Example("Dear [name], meet me at [place].", "Dear [name], meet me.", {"num_placeholders": 2})


def check(prompt: str, response: str, *, num_placeholders: int) -> bool:
    """Return whether '[...]' occurs `num_placeholders` times or more."""
    found = 0
    # As the pattern '\[.*?\]' finds them, without reading a line again for each '[' that is never closed.
    for line in response.split("\n"):
        start = line.find("[")
        while start >= 0 and (end := line.find("]", start)) >= 0:
            found += 1
            start = line.find("[", end)
    return found >= num_placeholders
