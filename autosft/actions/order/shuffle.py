"""Train on the rows in random order, whatever order they stand in."""

from __future__ import annotations

from typing import Any

import numpy as np

from autosft.actions.context import ActionContext
from autosft.actions.params import RowFilter
from autosft.pool import Pool

EXAMPLE: dict[str, Any] = {}


class Params(RowFilter):
    """Which rows; the others keep their place."""


def apply(pool: Pool, params: Params, ctx: ActionContext) -> Pool:
    """Return the pool with positions spread evenly over the whole budget."""
    selected = params.selects(pool)
    return pool.with_order(
        np.where(selected, 0.5, pool.order_keys), np.where(selected, 1.0, pool.order_jitter)
    )
