"""Two sentences or more, then two bullet points '*' or more, and nothing after them.

Source: IFBench (arXiv:2507.02833), its program as of August 2026. A blank line between the two is the last
line before the bullet points, as there.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.nltk_text import sentences

EXAMPLE = Example("It is red. It is small.\n* quick\n* shy", "It is red.\n* quick")
REQUIRES = ("nltk",)


def check(prompt: str, response: str) -> bool:
    """Return whether the text has that shape."""
    n_sentences = n_bullets = 0
    open_for_text = True
    for line in (line.strip() for line in response.split("\n")):
        if line.startswith("*"):
            if n_sentences < 2:
                return False
            open_for_text = False
            n_bullets += 1
        elif not open_for_text:
            return False
        else:
            found = len(sentences(line))
            n_sentences += found
            open_for_text = found > 0
    return n_bullets >= 2
