"""English stop words make up at most a percentage of the words.

Source: IFBench (arXiv:2507.02833); decided by the package if_verifiable.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.library import decide

EXAMPLE = Example("Foxes chase quick hens.", "It is of the same.", {"percentage": 20})
REQUIRES = ("if_verifiable", "nltk")


def check(prompt: str, response: str, *, percentage: int) -> bool:
    """Return whether the share is at most `percentage`."""
    return decide("ratio:stop_words", response, percentage=percentage)
