"""A percentage of the response's character trigrams, give or take two points, occurs in a reference text.

Source: IFBench (arXiv:2507.02833); decided by the package if_verifiable. Trigrams are of characters, as in
IFBench's program.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.library import decide

EXAMPLE = Example("the fox", "a hen", {"reference_text": "the fox is red", "percentage": 100})
REQUIRES = ("if_verifiable",)


def check(prompt: str, response: str, *, reference_text: str, percentage: int) -> bool:
    """Return whether the share lies within two points of `percentage`."""
    return decide("ratio:overlap", response, reference_text=reference_text, percentage=percentage)
