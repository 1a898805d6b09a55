"""The multiples of 7 between 10 and 50, and no other number.

Source: IFBench (arXiv:2507.02833); decided by the package if_verifiable.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.library import decide

EXAMPLE = Example("14, 21, 28, 35, 42, 49", "7, 14, 21, 28, 35, 42, 49")
REQUIRES = ("if_verifiable",)


def check(prompt: str, response: str) -> bool:
    """Return whether the numbers are those, in order."""
    return decide("custom:multiples", response)
