"""Words with odd and even numbers of syllables alternate.

Source: IFBench (arXiv:2507.02833); decided by the package if_verifiable. Syllables are counted by syllapy.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.library import decide

EXAMPLE = Example("fox river fox river", "fox fox river")
REQUIRES = ("if_verifiable",)


def check(prompt: str, response: str) -> bool:
    """Return whether neighbours differ in parity."""
    return decide("words:odd_even_syllables", response)
