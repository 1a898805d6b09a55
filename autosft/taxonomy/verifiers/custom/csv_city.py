"""A CSV table of ID, Country, City, Year, Count with seven rows.

Source: IFBench (arXiv:2507.02833); decided by the package if_verifiable. A table that cannot be parsed fails.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.library import decide

HEADER, ROW = "ID,Country,City,Year,Count", "1,Peru,Lima,2001,5"
EXAMPLE = Example("\n".join([HEADER, *[ROW] * 7]), "\n".join([HEADER, ROW]))
REQUIRES = ("if_verifiable",)


def check(prompt: str, response: str) -> bool:
    """Return whether header and rows are right."""
    return decide("custom:csv_city", response)
