"""All cased letters are upper-case, and there is at least one."""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example

EXAMPLE = Example("THE FOX IS RED.", "THE FOX IS red.")


def check(prompt: str, response: str) -> bool:
    """Return whether the text is upper-case."""
    return response.isupper()
