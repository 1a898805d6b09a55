"""Train last on rows that pass their requirements; rows that fail theirs, or have none, come before."""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import Field

from autosft.actions.context import ActionContext, failing
from autosft.actions.params import ActionParams, Checks
from autosft.pool import Pool

EXAMPLE: dict[str, Any] = {"clean_frac": 0.5}


class Params(ActionParams):
    """How much of the budget's end is kept for passing rows."""

    checks: Checks = Field("all", description="Which requirements count.")
    clean_frac: float = Field(1.0, gt=0, le=1, description="Budget's end for passing rows alone.")


def apply(pool: Pool, params: Params, ctx: ActionContext) -> Pool:
    """Return the pool with positions: passing rows alone at the end, all others evenly mixed before."""
    rows = pool.rows()
    good = np.array([bool(row.requirements) and not failing(ctx.passes(row), params.checks) for row in rows])
    amount = ctx.tokens(pool) * pool.weights
    passing = float(amount[good].sum()) / max(float(amount.sum()), 1.0)
    if passing in (0.0, 1.0):
        return pool
    clean = min(params.clean_frac, passing)
    # Which passing rows go to the end: a random part whose tokens make up the clean fraction.
    order = ctx.rng("order/verified_last", params.model_dump()).permutation(np.flatnonzero(good))
    share = np.cumsum(amount[order]) / max(float(amount.sum()), 1.0)
    late = np.zeros(len(pool), dtype=bool)
    late[order[share <= clean + 1e-9]] = True
    border = 1 - clean
    for index in np.flatnonzero(late).tolist():
        ctx.because(rows[index], "passes: at the end")
    return pool.with_order(np.where(late, border + clean / 2, border / 2), np.where(late, clean, border))
