"""A given word occurs in the N-th sentence, as a whole word, in any case.

Source: IFBench (arXiv:2507.02833), its program as of August 2026.
"""

from __future__ import annotations

import re

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.nltk_text import sentences

EXAMPLE = Example("It is red. The fox ran.", "The fox is red. It ran.", {"word": "fox", "N": 2})
REQUIRES = ("nltk",)


def check(prompt: str, response: str, *, word: str, N: int) -> bool:
    """Return whether the `N`-th sentence, from 1, holds `word`."""
    found = sentences(response)
    return 0 < N <= len(found) and bool(
        re.search(rf"\b{re.escape(word)}\b", found[N - 1], flags=re.IGNORECASE)
    )
