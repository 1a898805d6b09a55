"""The answer 'bald eagle' is given letter by letter in reverse.

Source: IFBench (arXiv:2507.02833); decided by the package if_verifiable.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.library import decide

EXAMPLE = Example("elgae dlab eht si tI", "It is the bald eagle")
REQUIRES = ("if_verifiable",)


def check(prompt: str, response: str) -> bool:
    """Return whether the reversed name is found."""
    return decide("custom:character_reverse", response)
