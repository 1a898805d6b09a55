"""The response is in English and all its letters are lower-case."""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.languages import is_language

EXAMPLE = Example("the fox is a small red animal that lives in the forest.", "The fox is a small red animal.")
REQUIRES = ("langdetect",)


def check(prompt: str, response: str) -> bool:
    """Return whether the text is lower-case and detected as English."""
    return response.islower() and is_language(response, "en")
