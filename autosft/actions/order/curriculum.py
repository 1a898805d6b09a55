"""Train on the rows from short to long, or by the loss they had; or the other way round."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from pydantic import Field

from autosft.actions.context import ActionContext
from autosft.actions.params import ActionParams, Name
from autosft.errors import ActionError
from autosft.pool import Pool

EXAMPLE: dict[str, Any] = {"by": "length", "direction": "ascending"}


class Params(ActionParams):
    """What rows are ranked by; rows without a loss are spread over the whole budget."""

    by: Literal["length", "loss"] = "length"
    artifact: Name | None = Field(None, description="Fingerprint of the training artifact, for `loss`.")
    direction: Literal["ascending", "descending"] = "ascending"
    jitter: float = Field(
        0.05, ge=0, le=1, description="Width of random displacement, a fraction of the budget."
    )


def apply(pool: Pool, params: Params, ctx: ActionContext) -> Pool:
    """Return the pool with positions by rank, counted in tokens.

    Raises:
        ActionError: Ranking by loss without an artifact, or without a loss for any row.
    """
    tokens = ctx.tokens(pool)
    if params.by == "length":
        values = tokens.astype(np.float64)
    else:
        if params.artifact is None:
            raise ActionError("ranking by loss needs the training artifact", where="artifact")
        losses = ctx.row_loss(params.artifact)
        values = np.array([losses.get(row_id, np.nan) for row_id in pool.ids])
        if np.isnan(values).all():
            raise ActionError("no row of the pool has a loss in it", where=f"artifact {params.artifact}")
    ranked = np.argsort(values if params.direction == "ascending" else -values, kind="stable")
    ranked = ranked[~np.isnan(values[ranked])]
    amount = (tokens * pool.weights)[ranked]
    middle = (np.cumsum(amount) - amount / 2) / max(float(amount.sum()), 1.0)
    keys, jitter = np.full(len(pool), 0.5), np.ones(len(pool))
    keys[ranked], jitter[ranked] = np.clip(middle, 0, 1), params.jitter
    return pool.with_order(keys, jitter)
