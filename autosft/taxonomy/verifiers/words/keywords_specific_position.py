"""A keyword is the m-th word of the n-th sentence, in any case.

Source: IFBench (arXiv:2507.02833), its program as of August 2026.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.nltk_text import sentences, word_tokens

EXAMPLE = Example("It is red. The fox ran.", "The fox ran. It is red.", {"keyword": "fox", "n": 2, "m": 2})
REQUIRES = ("nltk",)


def check(prompt: str, response: str, *, keyword: str, n: int, m: int) -> bool:
    """Return whether it stands there; punctuation marks are no words."""
    found = sentences(response)
    if not 0 < n <= len(found):
        return False
    words = [token for token in word_tokens(found[n - 1]) if any(letter.isalnum() for letter in token)]
    return 0 < m <= len(words) and words[m - 1].lower() == keyword.strip().lower()
