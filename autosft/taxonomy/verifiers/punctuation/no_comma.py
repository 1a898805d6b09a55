"""The response holds no comma."""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example

EXAMPLE = Example("The fox is red and small.", "The fox, a small animal, is red.")


def check(prompt: str, response: str) -> bool:
    """Return whether there is no ','."""
    return "," not in response
