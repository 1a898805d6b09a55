"""A CSV table of products with fourteen rows, one field with a special character in double quotes.

Source: IFBench (arXiv:2507.02833); decided by the package if_verifiable.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.library import decide

HEADER, PLAIN = "ProductID,Category,Brand,Price,Stock", "2,Tea,Fox,2,9"
QUOTED = '1,"Tea & Co",Fox,2,9'
EXAMPLE = Example("\n".join([HEADER, QUOTED, *[PLAIN] * 13]), "\n".join([HEADER, *[PLAIN] * 14]))
REQUIRES = ("if_verifiable",)


def check(prompt: str, response: str) -> bool:
    """Return whether header, rows and the quoted field are right."""
    return decide("custom:csv_special_character", response)
