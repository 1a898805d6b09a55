"""No word occurs more than N times.

Source: IFBench (arXiv:2507.02833); decided by the package if_verifiable.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.library import decide

EXAMPLE = Example("The fox is red.", "The fox, the fox, the fox.", {"small_n": 2})
REQUIRES = ("if_verifiable",)


def check(prompt: str, response: str, *, small_n: int) -> bool:
    """Return whether no word, in any case, occurs more than `small_n` times."""
    return decide("words:repeats", response, small_n=small_n)
