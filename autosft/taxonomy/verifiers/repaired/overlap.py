"""A percentage of the response's word trigrams, give or take two points, occurs in a reference text.

Repairs ratio:overlap: trigrams are of characters there, of which any two English texts share many.
"""

from __future__ import annotations

import re

from autosft.taxonomy.verifiers.example import Example

EXAMPLE = Example(
    "the fox is red", "a hen sat there", {"reference_text": "so the fox is red", "percentage": 100}
)
WORD = re.compile(r"\w+(?:['’-]\w+)*")
POINTS = 2
REPAIRS = "ratio:overlap"
REQUIRES = ()


def check(prompt: str, response: str, *, reference_text: str, percentage: int) -> bool:
    """Return whether the share of different trigrams lies within two points of `percentage`, in any case."""
    own, known = _trigrams(response), _trigrams(reference_text)
    return bool(own) and abs(100 * len(own & known) / len(own) - percentage) <= POINTS


def _trigrams(text: str) -> set[tuple[str, ...]]:
    words = [word.lower() for word in WORD.findall(text)]
    return set(zip(words, words[1:], words[2:], strict=False))
