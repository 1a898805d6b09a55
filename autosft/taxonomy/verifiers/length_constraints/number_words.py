"""The response has fewer than or at least N words (runs of letters, digits and underscores)."""

from __future__ import annotations

import re

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.relation import Relation, holds

EXAMPLE = Example("It is red.", "Yes.", {"num_words": 3, "relation": "at least"})


def check(prompt: str, response: str, *, num_words: int, relation: Relation) -> bool:
    """Return whether the number of words stands in the relation to `num_words`."""
    return holds(len(re.findall(r"\w+", response)), relation, num_words)
