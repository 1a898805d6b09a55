"""Every sentence ends with an emoji.

Source: IFBench (arXiv:2507.02833), its program as of August 2026.
"""

from __future__ import annotations

import string

from autosft.taxonomy.verifiers.emojis import is_emoji
from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.nltk_text import sentences

EXAMPLE = Example("It is red 😀. It is small 🦊.", "It is red 😀. It is small.")
REQUIRES = ("emoji", "nltk")
MARKS = str.maketrans("", "", string.punctuation)


def check(prompt: str, response: str) -> bool:
    """Return whether an emoji ends each sentence or begins the next."""
    texts = [s.translate(MARKS).strip() for s in sentences(response)]
    for index, text in enumerate(texts):
        if not text:
            return False
        # The last but one: a variation selector may follow the emoji.
        if any(is_emoji(letter) for letter in text[-2:]):
            continue
        # The splitter puts an emoji that follows the full stop at the front of the next sentence.
        if index + 1 == len(texts) or not texts[index + 1] or not is_emoji(texts[index + 1][0]):
            return False
    return True
