"""Words in capitals occur fewer than or at least N times."""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.relation import Relation, holds
from autosft.taxonomy.verifiers.treebank import count_capitals

EXAMPLE = Example(
    "The FOX is RED.", "The FOX is red.", {"capital_frequency": 2, "capital_relation": "at least"}
)


def check(prompt: str, response: str, *, capital_frequency: int, capital_relation: Relation) -> bool:
    """Return whether the number of tokens in capitals stands in the relation to `capital_frequency`."""
    return holds(count_capitals(response), capital_relation, capital_frequency)
