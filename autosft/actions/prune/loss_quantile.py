"""Drop the rows with the highest or lowest loss when last trained on."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from pydantic import Field

from autosft.actions.context import ActionContext
from autosft.actions.params import Name, RowFilter
from autosft.errors import ActionError
from autosft.pool import Pool

EXAMPLE: dict[str, Any] = {"artifact": "0123456789abcdef01234567", "highest_frac": 0.1, "within": "leaf"}


class Params(RowFilter):
    """Shares of rows to drop at either end; rows that were not trained on stay."""

    artifact: Name = Field(description="Fingerprint of the training artifact whose per-row losses count.")
    highest_frac: float = Field(0.0, ge=0, le=0.9)
    lowest_frac: float = Field(0.0, ge=0, le=0.9)
    within: Literal["pool", "leaf"] = Field("pool", description="Rank among all rows, or inside each leaf.")


def apply(pool: Pool, params: Params, ctx: ActionContext) -> Pool:
    """Return the pool without the rows at the ends of the loss ranking.

    Raises:
        ActionError: No per-row losses, or none for these rows.
        EmptyPoolError: No row would be left.
    """
    losses = ctx.row_loss(params.artifact)
    values = np.array([losses.get(row_id, np.nan) for row_id in pool.ids])
    values[~params.selects(pool)] = np.nan
    if np.isnan(values).all():
        raise ActionError("no row of the pool has a loss in it", where=f"artifact {params.artifact}")
    groups: dict[str, list[int]] = {}
    for index, leaf in enumerate(pool.leaves):
        if not np.isnan(values[index]):
            groups.setdefault((leaf or "") if params.within == "leaf" else "", []).append(index)
    keep = np.ones(len(pool), dtype=bool)
    for members in groups.values():
        ranked = np.array(members)[np.argsort(values[members], kind="stable")]
        low, high = int(len(ranked) * params.lowest_frac), int(len(ranked) * params.highest_frac)
        for part, reason in (
            (ranked[:low], "lowest losses"),
            (ranked[len(ranked) - high :], "highest losses"),
        ):
            keep[part] = False
            for index in part.tolist():
                ctx.because(pool.ids[index], reason)
    return pool.keep(keep)
