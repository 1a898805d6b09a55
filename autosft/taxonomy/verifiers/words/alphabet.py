"""Each word starts with the letter after the one the word before it starts with, 'a' after 'z'.

Source: IFBench (arXiv:2507.02833); decided by the package if_verifiable.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.library import decide

EXAMPLE = Example("All bears can dance", "All cats can dance")
REQUIRES = ("if_verifiable",)


def check(prompt: str, response: str) -> bool:
    """Return whether the first letters follow one another."""
    return decide("words:alphabet", response)
