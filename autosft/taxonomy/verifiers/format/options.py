"""The response is exactly one of the given options.

Source: IFBench (arXiv:2507.02833); decided by the package if_verifiable. Options are separated by '/', else
by 'or', else by commas; letters as options are compared exactly.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.library import decide

EXAMPLE = Example("Maybe.", "It is maybe so.", {"options": "yes/no/maybe"})
REQUIRES = ("if_verifiable",)


def check(prompt: str, response: str, *, options: str) -> bool:
    """Return whether the response is one of them."""
    return decide("format:options", response, options=options)
