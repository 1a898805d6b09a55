"""Every N-th word holds a Japanese character.

Source: IFBench (arXiv:2507.02833); decided by the package if_verifiable. Words that are digits or
punctuation only are passed over, as in IFBench's program.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.library import decide

EXAMPLE = Example("The fox きつね is red 赤い", "The fox is red and small", {"N": 3})
REQUIRES = ("if_verifiable",)


def check(prompt: str, response: str, *, N: int) -> bool:
    """Return whether every `N`-th word does."""
    return decide("count:words_japanese", response, N=N)
