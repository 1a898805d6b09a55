"""Each sentence has exactly N words more than the one before.

Source: IFBench (arXiv:2507.02833), its program as of August 2026.
"""

from __future__ import annotations

import string
from itertools import pairwise

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.nltk_text import sentences

EXAMPLE = Example("It is. It is red. It is red now.", "It is. It is red and small.", {"small_n": 1})
REQUIRES = ("nltk",)
MARKS = str.maketrans("", "", string.punctuation)


def check(prompt: str, response: str, *, small_n: int) -> bool:
    """Return whether the word counts grow by `small_n`."""
    counts = [len(s.translate(MARKS).split()) for s in sentences(response)]
    return all(after == before + small_n for before, after in pairwise(counts))
