"""The response uses at least N different coordinating conjunctions.

Source: IFBench (arXiv:2507.02833); decided by the package if_verifiable. A conjunction in capitals counts
as another one, as in IFBench's program.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.library import decide

EXAMPLE = Example("Red and small, but quick.", "Red and small and quick.", {"small_n": 2})
REQUIRES = ("if_verifiable",)


def check(prompt: str, response: str, *, small_n: int) -> bool:
    """Return whether `small_n` different ones of and, but, for, nor, or, so, yet are found."""
    return decide("count:conjunctions", response, small_n=small_n)
