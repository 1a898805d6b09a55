"""Quotes are nested three levels deep, double and single ones in turn.

Source: IFBench (arXiv:2507.02833); decided by the package if_verifiable.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.library import decide

EXAMPLE = Example('"a \'b "c" d\' e"', '"a"')
REQUIRES = ("if_verifiable",)


def check(prompt: str, response: str) -> bool:
    """Return whether three levels are opened and closed."""
    return decide("format:quotes", response)
