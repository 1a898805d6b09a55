"""The number of words (runs of letters, digits and underscores) lies between two bounds, both included.

Source: IFBench (arXiv:2507.02833); decided by the package if_verifiable.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.library import decide

EXAMPLE = Example("The fox is red.", "Red.", {"min_words": 3, "max_words": 5})
REQUIRES = ("if_verifiable",)


def check(prompt: str, response: str, *, min_words: int, max_words: int) -> bool:
    """Return whether the number of words is in the range."""
    return decide("count:word_count_range", response, min_words=min_words, max_words=max_words)
