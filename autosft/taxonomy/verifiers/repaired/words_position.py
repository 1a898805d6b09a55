"""A keyword is the second word and the second to last word, in any case.

Repairs words:words_position: punctuation marks inside the text count as words there.
"""

from __future__ import annotations

import re

from autosft.taxonomy.verifiers.example import Example

EXAMPLE = Example("Oh, fox and the fox ran.", "The fox and a hen ran.", {"keyword": "fox"})
WORD = re.compile(r"\w+(?:['’-]\w+)*")
REPAIRS = "words:words_position"
REQUIRES = ()


def check(prompt: str, response: str, *, keyword: str) -> bool:
    """Return whether it stands in both places; a word is a run of letters, digits and inner marks."""
    words = [word.lower() for word in WORD.findall(response)]
    return len(words) > 1 and words[1] == words[-2] == keyword.strip().lower()
