"""The response holds exactly N numbers (runs of digits, punctuation left out).

Source: IFBench (arXiv:2507.02833); decided by the package if_verifiable.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.library import decide

EXAMPLE = Example("There are 3 foxes and 1,200 hens.", "There are 3 foxes.", {"N": 2})
REQUIRES = ("if_verifiable",)


def check(prompt: str, response: str, *, N: int) -> bool:
    """Return whether there are `N` numbers."""
    return decide("count:numbers", response, N=N)
