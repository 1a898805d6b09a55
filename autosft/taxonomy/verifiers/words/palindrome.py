"""The response holds at least ten palindromes of five or more letters.

Source: IFBench (arXiv:2507.02833); decided by the package if_verifiable.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.library import decide

EXAMPLE = Example("level radar civic rotor kayak madam refer tenet stats minim", "level radar civic")
REQUIRES = ("if_verifiable",)


def check(prompt: str, response: str) -> bool:
    """Return whether ten or more words are palindromes."""
    return decide("words:palindrome", response)
