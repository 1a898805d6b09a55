"""The whole response stands in double quotation marks."""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example

EXAMPLE = Example('"The fox is red."', 'The "fox" is red.')


def check(prompt: str, response: str) -> bool:
    """Return whether the stripped response begins and ends with '"' and is longer than one character."""
    text = response.strip()
    return len(text) > 1 and text[0] == '"' and text[-1] == '"'
