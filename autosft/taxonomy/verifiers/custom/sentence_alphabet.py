"""Twenty-six sentences whose first letters are the alphabet.

Source: IFBench (arXiv:2507.02833), its program as of August 2026.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.nltk_text import sentences

ALPHABET = "abcdefghijklmnopqrstuvwxyz"
EXAMPLE = Example(" ".join(f"{letter}nd so." for letter in ALPHABET.upper()), "And so. But no.")
REQUIRES = ("nltk",)


def check(prompt: str, response: str) -> bool:
    """Return whether there are 26 and each starts with its letter."""
    found = sentences(response)
    return len(found) == 26 and all(
        sentence.split() and sentence.split()[0][0].lower() == letter
        for sentence, letter in zip(found, ALPHABET, strict=True)
    )
