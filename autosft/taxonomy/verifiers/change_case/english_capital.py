"""The response is in English and all its letters are upper-case."""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.languages import is_language

EXAMPLE = Example("THE FOX IS A SMALL RED ANIMAL THAT LIVES IN THE FOREST.", "The fox is a small red animal.")
REQUIRES = ("langdetect",)


def check(prompt: str, response: str) -> bool:
    """Return whether the text is upper-case and detected as English."""
    return response.isupper() and is_language(response, "en")
