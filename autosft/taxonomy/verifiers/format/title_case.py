"""Every word is in title case.

Source: IFBench (arXiv:2507.02833), its program as of August 2026.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.nltk_text import word_tokens

EXAMPLE = Example("The Red Fox", "The red Fox")
REQUIRES = ("nltk",)


def check(prompt: str, response: str) -> bool:
    """Return whether no word starts with a small letter; words of mixed case pass."""
    words = [token for token in word_tokens(response) if token[0].isalpha()]
    return not any(
        word[0].islower() and (len(word) == 1 or word[1:].islower() or word[1:].isupper()) for word in words
    )
