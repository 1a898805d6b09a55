"""The response has a thesis in HTML italics, and text after it.

Source: IFBench (arXiv:2507.02833); decided by the package if_verifiable.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.library import decide

EXAMPLE = Example("<i>Foxes are clever.</i> They learn fast.", "Foxes are clever. They learn fast.")
REQUIRES = ("if_verifiable",)


def check(prompt: str, response: str) -> bool:
    """Return whether the first part in italics is filled and followed by text."""
    return decide("format:thesis", response)
