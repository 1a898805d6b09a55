"""The response uses a given separator instead of bullet points, at least twice.

Source: IFBench (arXiv:2507.02833); decided by the package if_verifiable.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.library import decide

EXAMPLE = Example("... red\n... small", "* red\n* small", {"sep": "..."})
REQUIRES = ("if_verifiable",)


def check(prompt: str, response: str, *, sep: str) -> bool:
    """Return whether `sep` occurs twice or more."""
    return decide("format:list", response, sep=sep)
