"""Brackets are nested five levels deep and closed rightly.

Source: IFBench (arXiv:2507.02833); decided by the package if_verifiable.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.library import decide

EXAMPLE = Example("a (b [c {d (e [f])}])", "a (b [c])")
REQUIRES = ("if_verifiable",)


def check(prompt: str, response: str) -> bool:
    """Return whether a group of five levels is closed."""
    return decide("format:parentheses", response)
