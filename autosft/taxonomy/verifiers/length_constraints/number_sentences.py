"""The response has fewer than or at least N sentences, as NLTK's sentence model splits them."""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.nltk_text import sentences
from autosft.taxonomy.verifiers.relation import Relation, holds

EXAMPLE = Example("It is red. It is small.", "It is red.", {"num_sentences": 2, "relation": "at least"})
REQUIRES = ("nltk",)


def check(prompt: str, response: str, *, num_sentences: int, relation: Relation) -> bool:
    """Return whether the number of sentences stands in the relation to `num_sentences`."""
    return holds(len(sentences(response)), relation, num_sentences)
