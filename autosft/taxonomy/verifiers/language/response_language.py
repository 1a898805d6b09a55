"""The whole response is in one language."""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.languages import is_language

EXAMPLE = Example(
    "Der Fuchs ist ein kleines Tier und lebt im Wald.",
    "The fox is a small animal and lives in the forest.",
    {"language": "de"},
)
REQUIRES = ("langdetect",)


def check(prompt: str, response: str, *, language: str) -> bool:
    """Return whether the text is detected as `language`, an ISO 639-1 code."""
    return is_language(response, language)
