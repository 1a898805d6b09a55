"""The last word of each sentence is the first word of the next, in any case.

Source: IFBench (arXiv:2507.02833), its program as of August 2026.
"""

from __future__ import annotations

import string
from itertools import pairwise

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.nltk_text import sentences

EXAMPLE = Example("I see a fox. Fox and hen met.", "I see a fox. It ran.")
REQUIRES = ("nltk",)
EDGE = string.punctuation + " "


def check(prompt: str, response: str) -> bool:
    """Return whether every two neighbours are linked."""
    found = sentences(response)
    for before, after in pairwise(found):
        last, first = before.rstrip(EDGE).split(), after.lstrip(EDGE).split()
        if not last or not first or last[-1].lower() != first[0].lower():
            return False
    return True
