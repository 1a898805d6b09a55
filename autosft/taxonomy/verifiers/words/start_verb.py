"""The response starts with a verb.

Source: IFBench (arXiv:2507.02833), its program as of August 2026. NLTK's perceptron tagger decides; it
looks at two tokens on either side, so the first five tokens give the first one the tag that the whole text
would.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.nltk_text import tags, word_tokens

EXAMPLE = Example("Running is fun for foxes.", "The fox is red.")
REQUIRES = ("nltk",)
TOKENS_SEEN = 5


def check(prompt: str, response: str) -> bool:
    """Return whether the first token is tagged as a verb."""
    tokens = word_tokens(response)[:TOKENS_SEEN]
    return bool(tokens) and "VB" in tags(tokens)[0]
