"""The response uses . , ; : ? ! and an interrobang.

Source: IFBench (arXiv:2507.02833); decided by the package if_verifiable.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.library import decide

EXAMPLE = Example("Red, small; quick: yes! Is it? Really?! Yes.", "Red, small; quick: yes! Is it?")
REQUIRES = ("if_verifiable",)


def check(prompt: str, response: str) -> bool:
    """Return whether every mark occurs."""
    return decide("count:punctuation", response)
