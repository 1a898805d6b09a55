"""There are twice as many sentences that end in '.' as in '?', and at least one asks.

Repairs ratio:sentence_type: a text with neither passes there, twice nothing being nothing.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.nltk_text import sentences

EXAMPLE = Example("It is red. It is small. Is it quick?", "It is red and quick!")
REPAIRS = "ratio:sentence_type"
REQUIRES = ("nltk",)


def check(prompt: str, response: str) -> bool:
    """Return whether the ratio is two to one."""
    found = sentences(response)
    asking = sum(s.endswith("?") for s in found)
    return asking > 0 and sum(s.endswith(".") for s in found) == 2 * asking
