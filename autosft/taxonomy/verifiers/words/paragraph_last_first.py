"""Each line ends with the word it starts with.

Source: IFBench (arXiv:2507.02833); decided by the package if_verifiable.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.library import decide

EXAMPLE = Example("Fox meets fox", "The fox is red")
REQUIRES = ("if_verifiable",)


def check(prompt: str, response: str) -> bool:
    """Return whether the first and last word of every line agree, in any case."""
    return decide("words:paragraph_last_first", response)
