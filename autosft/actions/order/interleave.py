"""Spread every leaf or source evenly over the whole budget, so that any stretch holds the same mixture."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from autosft.actions.context import ActionContext
from autosft.actions.order._places import token_places
from autosft.actions.params import ActionParams
from autosft.pool import Pool

EXAMPLE: dict[str, Any] = {"by": "leaf"}
KIND = "order/interleave"


class Params(ActionParams):
    """What is spread; inside a group the order is random."""

    by: Literal["leaf", "source"] = "leaf"


def apply(pool: Pool, params: Params, ctx: ActionContext) -> Pool:
    """Return the pool with the k-th of a group's n rows at about k / n of the budget."""
    labels = np.array(pool.sources if params.by == "source" else [leaf or "" for leaf in pool.leaves])
    amount = ctx.tokens(pool) * pool.weights
    rng = ctx.rng(KIND, params.model_dump())
    places = np.full(len(pool), 0.5)
    for label in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == label))
        places[members] = token_places(members, amount)[members]
    return pool.with_order(places, 0.0)
