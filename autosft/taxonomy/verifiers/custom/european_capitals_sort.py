"""European capitals north of 45 degrees, from north to south, separated by commas.

Source: IFBench (arXiv:2507.02833); decided by the package if_verifiable.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.library import decide

EXAMPLE = Example(
    "Reykjavik, Helsinki, Oslo, Tallinn, Stockholm, Riga, Moscow, Copenhagen, Vilnius, Minsk, Dublin, "
    "Berlin, Amsterdam, Warsaw, London, Brussels, Prague, Luxembourg, Paris, Vienna, Bratislava, Budapest, "
    "Vaduz, Chisinau, Bern, Ljubljana, Zagreb",
    "Oslo, Helsinki, Reykjavik",
)
REQUIRES = ("if_verifiable",)


def check(prompt: str, response: str) -> bool:
    """Return whether the list is IFBench's, accents aside."""
    return decide("custom:european_capitals_sort", response)
