"""The answer 'bald eagle' in a sentence whose words are in reverse order.

Source: IFBench (arXiv:2507.02833), its program as of August 2026.
"""

from __future__ import annotations

import string

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.nltk_text import sentences

EXAMPLE = Example("eagle bald the is It", "It is the bald eagle")
REQUIRES = ("nltk",)
MARKS = str.maketrans("", "", string.punctuation)


def check(prompt: str, response: str) -> bool:
    """Return whether the words, reversed, make one sentence that names it."""
    words = response.lower().strip().translate(MARKS).split()
    turned = " ".join(reversed(words))
    return "bald eagle" in turned and turned in sentences(turned)
