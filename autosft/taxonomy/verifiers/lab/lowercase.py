"""All cased letters are lower-case, and there is at least one."""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example

EXAMPLE = Example("the fox is red.", "The fox is red.")


def check(prompt: str, response: str) -> bool:
    """Return whether the text is lower-case."""
    return response.islower()
