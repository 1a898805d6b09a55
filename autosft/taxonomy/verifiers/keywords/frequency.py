"""A keyword occurs fewer than or at least N times, in any case, also inside other words."""

from __future__ import annotations

import re

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.pattern import keyword_pattern
from autosft.taxonomy.verifiers.relation import Relation, holds

EXAMPLE = Example(
    "A fox is a fox.", "A fox is an animal.", {"keyword": "fox", "frequency": 2, "relation": "at least"}
)


def check(prompt: str, response: str, *, keyword: str, frequency: int, relation: Relation) -> bool:
    """Return whether the number of occurrences stands in the relation to `frequency`."""
    found = sum(1 for _ in re.finditer(keyword_pattern(keyword.strip()), response, flags=re.IGNORECASE))
    return holds(found, relation, frequency)
