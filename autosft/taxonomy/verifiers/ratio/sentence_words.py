"""Three sentences of the same number of characters.

Source: IFBench (arXiv:2507.02833), its program as of August 2026. That their words differ is not compared,
as there.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.nltk_text import sentences

EXAMPLE = Example("It is red. He is shy. We go now.", "It is red. It is small. It is quick.")
REQUIRES = ("nltk",)


def check(prompt: str, response: str) -> bool:
    """Return whether there are three and their lengths agree."""
    found = sentences(response)
    return len(found) == 3 and len({len(s.strip()) for s in found}) == 1
