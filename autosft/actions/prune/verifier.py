"""Drop rows whose response fails the row's own requirements."""

from __future__ import annotations

from typing import Any

import numpy as np

from autosft.actions.context import ActionContext, failing
from autosft.actions.params import VerdictFilter
from autosft.pool import Pool

EXAMPLE: dict[str, Any] = {"checks": "form"}


class Params(VerdictFilter):
    """Which failures count. Rows without requirements stay."""


def apply(pool: Pool, params: Params, ctx: ActionContext) -> Pool:
    """Return the pool without the failing rows.

    Raises:
        EmptyPoolError: No row would be left.
    """
    keep = np.ones(len(pool), dtype=bool)
    rows = pool.rows()
    for index in np.flatnonzero(params.selects(pool)).tolist():
        failed = params.counted(rows[index], failing(ctx.passes(rows[index]), params.checks))
        if failed:
            keep[index] = False
            ctx.because(rows[index], f"fails {failed[0]}")
    return pool.keep(keep)
