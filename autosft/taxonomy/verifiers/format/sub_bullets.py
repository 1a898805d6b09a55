"""Every bullet point '*' has at least one sub-bullet '-'.

Source: IFBench (arXiv:2507.02833); decided by the package if_verifiable. A response without bullet points
passes, as in IFBench's program.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.library import decide

EXAMPLE = Example("* red\n  - dark\n* small\n  - tiny", "* red\n* small")
REQUIRES = ("if_verifiable",)


def check(prompt: str, response: str) -> bool:
    """Return whether every '*' is followed by a '-' before the next one."""
    return decide("format:sub-bullets", response)
