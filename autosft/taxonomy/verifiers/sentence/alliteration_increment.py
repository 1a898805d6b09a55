"""Each sentence has more alliterating words in a row than the one before.

Source: IFBench (arXiv:2507.02833), its program as of August 2026.
"""

from __future__ import annotations

import string
from itertools import pairwise

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.nltk_text import sentences

EXAMPLE = Example("The fox ran. Big bears ate.", "Big bears ate. The fox ran.")
REQUIRES = ("nltk",)


def check(prompt: str, response: str) -> bool:
    """Return whether the counts grow strictly from sentence to sentence."""
    last = -1
    for sentence in sentences(response):
        words = [word.lstrip(string.punctuation + " ") for word in sentence.lower().split()]
        count = _alliterating([word[0] for word in words if word])
        if count <= last:
            return False
        last = count
    return True


def _alliterating(letters: list[str]) -> int:
    """Number of words that stand beside one with the same first letter, a run of k counted as k."""
    pairs = [first == second for first, second in pairwise(letters)]
    return sum(1 if index and pairs[index - 1] else 2 for index, pair in enumerate(pairs) if pair)
