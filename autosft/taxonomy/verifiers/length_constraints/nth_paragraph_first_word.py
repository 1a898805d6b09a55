"""The response has N paragraphs separated by blank lines, and one of them starts with a given word.

Source: IFEval. Its program counts paragraphs that hold text but looks the n-th one up among all of them,
which is kept.
"""

from __future__ import annotations

import re

from autosft.taxonomy.verifiers.example import Example

EXAMPLE = Example(
    "It is red.\n\nAlways small.",
    "It is red.\n\nIt is always small.",
    {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "always"},
)
STOPS = re.compile(r"[.,?!'\"]")


def check(prompt: str, response: str, *, num_paragraphs: int, nth_paragraph: int, first_word: str) -> bool:
    """Return whether both hold; the word is compared in lower case, up to its first punctuation mark."""
    parts = response.split("\n\n")
    filled = sum(1 for part in parts if part.strip())
    if filled != num_paragraphs or not 1 <= nth_paragraph <= filled:
        return False
    words = parts[nth_paragraph - 1].split()
    if not words:
        return False
    word = words[0].lstrip("'").lstrip('"')
    return "".join(letter.lower() for letter in STOPS.split(word, maxsplit=1)[0]) == first_word.lower()
