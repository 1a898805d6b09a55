"""Every word stands on a line of its own.

Source: IFBench (arXiv:2507.02833); decided by the package if_verifiable.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.library import decide

EXAMPLE = Example("the\nfox\nis\nred", "the fox\nis red")
REQUIRES = ("if_verifiable",)


def check(prompt: str, response: str) -> bool:
    """Return whether there are as many lines as words."""
    return decide("format:newline", response)
