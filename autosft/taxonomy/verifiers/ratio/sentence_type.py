"""There are twice as many sentences that end in '.' as in '?'.

Source: IFBench (arXiv:2507.02833), its program as of August 2026. A text with neither passes, as there.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.nltk_text import sentences

EXAMPLE = Example("It is red. It is small. Is it quick?", "It is red. Is it quick?")
REQUIRES = ("nltk",)


def check(prompt: str, response: str) -> bool:
    """Return whether the ratio is two to one."""
    found = sentences(response)
    return sum(s.endswith(".") for s in found) == 2 * sum(s.endswith("?") for s in found)
