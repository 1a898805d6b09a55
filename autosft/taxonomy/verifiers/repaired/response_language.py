"""The whole response is in one language, and there is enough of it to tell.

Repairs language:response_language: a response without any letters counts as every language there.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.languages import language_odds

EXAMPLE = Example("Der Fuchs ist ein kleines Tier und lebt im Wald.", "12345 67", {"language": "de"})
REPAIRS = "language:response_language"
REQUIRES = ("langdetect",)


def check(prompt: str, response: str, *, language: str) -> bool:
    """Return whether the text is detected as `language`, an ISO 639-1 code; undetectable text is not."""
    return next(iter(language_odds(response) or {}), None) == language
