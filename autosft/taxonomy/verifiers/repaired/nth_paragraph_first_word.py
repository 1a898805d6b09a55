"""The response has N paragraphs separated by blank lines, and one of them starts with a given word.

Repairs length_constraints:nth_paragraph_first_word: the n-th paragraph is looked up
among all pieces there, blank ones included, though only those with text are counted.
"""

from __future__ import annotations

import re

from autosft.taxonomy.verifiers.example import Example

EXAMPLE = Example(
    "It is red.\n\n\n\nAlways small.",
    "It is red.\n\nIt is always small.",
    {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "always"},
)
WORD = re.compile(r"\w+(?:['’-]\w+)*")
REPAIRS = "length_constraints:nth_paragraph_first_word"
REQUIRES = ()


def check(prompt: str, response: str, *, num_paragraphs: int, nth_paragraph: int, first_word: str) -> bool:
    """Return whether both hold, in any case; a paragraph is what holds text between blank lines."""
    filled = [part for part in re.split(r"\n\s*\n", response) if part.strip()]
    if len(filled) != num_paragraphs or not 1 <= nth_paragraph <= len(filled):
        return False
    found = WORD.search(filled[nth_paragraph - 1])
    return found is not None and found.group().lower() == first_word.strip().lower()
