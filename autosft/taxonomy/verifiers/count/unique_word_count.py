"""The response has at least N different words (separated by white space, outer punctuation and case aside).

Source: IFBench (arXiv:2507.02833); decided by the package if_verifiable.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.library import decide

EXAMPLE = Example("The fox is red.", "The fox, the fox.", {"N": 4})
REQUIRES = ("if_verifiable",)


def check(prompt: str, response: str, *, N: int) -> bool:
    """Return whether there are `N` different words."""
    return decide("count:unique_word_count", response, N=N)
