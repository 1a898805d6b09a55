"""Flatten or sharpen the mixture: shares of tokens are raised to 1 / temperature and normalised."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from autosft.actions.context import ActionContext
from autosft.actions.mix._weights import PLAIN, group_tokens, with_shares
from autosft.actions.params import ActionParams
from autosft.pool import Pool

EXAMPLE: dict[str, Any] = {"temperature": 2.0, "by": "leaf"}


class Params(ActionParams):
    """Temperature 1 changes nothing, a high one makes all groups equal, one below 1 favours large groups."""

    temperature: float = Field(ge=0.2, le=100)
    by: Literal["source", "leaf"] = "source"


def apply(pool: Pool, params: Params, ctx: ActionContext) -> Pool:
    """Return the pool with row weights that give the groups the tempered shares."""
    labels = pool.sources if params.by == "source" else [leaf or PLAIN for leaf in pool.leaves]
    totals = group_tokens(labels, pool.weights, ctx.tokens(pool))
    powered = {name: amount ** (1 / params.temperature) for name, amount in totals.items() if amount > 0}
    norm = sum(powered.values())
    if params.temperature == 1 or not norm:
        return pool
    return with_shares(pool, labels, totals, {name: value / norm for name, value in powered.items()})
