"""As many sentences end in '.' as in '?' and in '!'.

Source: IFBench (arXiv:2507.02833), its program as of August 2026. A text with none of them passes, as there.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.nltk_text import sentences

EXAMPLE = Example("It is red. Is it quick? Run!", "It is red. It is small. Run!")
REQUIRES = ("nltk",)


def check(prompt: str, response: str) -> bool:
    """Return whether the three counts are equal."""
    found = sentences(response)
    return len({sum(s.endswith(mark) for s in found) for mark in ".?!"}) == 1
