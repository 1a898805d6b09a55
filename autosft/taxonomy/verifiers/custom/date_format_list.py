"""A list of dates between 1769 and 1821, written YYYY-MM-DD and separated by commas.

Source: IFBench (arXiv:2507.02833); decided by the package if_verifiable.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.library import decide

EXAMPLE = Example("1796-05-10, 1805-12-02", "10 May 1796, 1805-12-02")
REQUIRES = ("if_verifiable",)


def check(prompt: str, response: str) -> bool:
    """Return whether every part is such a date."""
    return decide("custom:date_format_list", response)
