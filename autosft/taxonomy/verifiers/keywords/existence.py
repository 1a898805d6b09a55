"""The response holds every one of the keywords, in any case, also inside other words."""

from __future__ import annotations

import re

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.pattern import keyword_pattern

EXAMPLE = Example("The Fox runs by the river.", "The fox runs.", {"keywords": ["fox", "river"]})


def check(prompt: str, response: str, *, keywords: list[str]) -> bool:
    """Return whether all keywords are found."""
    return all(re.search(keyword_pattern(word), response, flags=re.IGNORECASE) for word in keywords)
