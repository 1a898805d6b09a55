"""The first word of the response is a given word, in any case."""

from __future__ import annotations

import re

from autosft.taxonomy.verifiers.example import Example

EXAMPLE = Example("River! The fox is red.", "The fox is by the river.", {"word": "river"})
WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


def check(prompt: str, response: str, *, word: str) -> bool:
    """Return whether the first word, punctuation before it aside, is `word`."""
    first = WORD.search(response)
    return first is not None and first.group().casefold() == word.strip().casefold()
