"""The two relations in which IFEval compares a count with a threshold."""

from __future__ import annotations

from typing import Literal

Relation = Literal["less than", "at least"]


def holds(count: int, relation: Relation, threshold: int) -> bool:
    """Return whether `count` stands in the relation to `threshold`."""
    return count < threshold if relation == "less than" else count >= threshold
