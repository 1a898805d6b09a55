"""Every line is indented deeper than the one before.

Source: IFBench (arXiv:2507.02833); decided by the package if_verifiable. A single line passes, as in
IFBench's program.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.library import decide

EXAMPLE = Example("red\n  small\n    quick", "red\nsmall")
REQUIRES = ("if_verifiable",)


def check(prompt: str, response: str) -> bool:
    """Return whether the indentation grows."""
    return decide("format:line_indent", response)
