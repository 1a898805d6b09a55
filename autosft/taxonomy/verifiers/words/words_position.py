"""A keyword is the second word and the second to last word, in any case.

Source: IFBench (arXiv:2507.02833), its program as of August 2026. Inner punctuation marks count as words,
as there.
"""

from __future__ import annotations

import string

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.nltk_text import word_tokens

EXAMPLE = Example("The fox and a fox ran.", "The fox and a hen ran.", {"keyword": "fox"})
REQUIRES = ("nltk",)


def check(prompt: str, response: str, *, keyword: str) -> bool:
    """Return whether it stands in both places; one mark at the end is passed over."""
    tokens = [token.lower() for token in word_tokens(response)]
    if len(tokens) > 1 and tokens[-1] in string.punctuation:
        tokens = tokens[:-1]
    return len(tokens) > 1 and tokens[1] == tokens[-2] == keyword.strip().lower()
