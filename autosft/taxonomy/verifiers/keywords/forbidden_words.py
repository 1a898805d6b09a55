"""The response holds none of the forbidden words, in any case, as whole words."""

from __future__ import annotations

import re

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.pattern import keyword_pattern

EXAMPLE = Example("The fox is redder.", "The fox is Red.", {"forbidden_words": ["red"]})


def check(prompt: str, response: str, *, forbidden_words: list[str]) -> bool:
    """Return whether no forbidden word is found."""
    return not any(
        re.search(r"\b" + keyword_pattern(word) + r"\b", response, flags=re.IGNORECASE)
        for word in forbidden_words
    )
