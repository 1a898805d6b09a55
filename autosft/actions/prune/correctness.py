"""Drop rows whose response is provably wrong: a content requirement fails, or it states a wrong sum."""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import Field

from autosft.actions.context import ActionContext, failing
from autosft.actions.params import RowFilter
from autosft.actions.prune._arithmetic import wrong_sums
from autosft.pool import Pool
from autosft.types import Row

EXAMPLE: dict[str, Any] = {"answers": True, "arithmetic": True}


class Params(RowFilter):
    """Which proofs of a mistake count. Where no program can decide, a row stays."""

    answers: bool = Field(
        True, description="Content requirements: known facts, right numbers (answer:number) and choices."
    )
    arithmetic: bool = Field(True, description="Statements such as `12 * 3 = 35` in a response.")


def apply(pool: Pool, params: Params, ctx: ActionContext) -> Pool:
    """Return the pool without the rows that are wrong.

    Raises:
        EmptyPoolError: No row would be left.
    """
    rows = pool.rows()
    keep = np.ones(len(pool), dtype=bool)
    for index in np.flatnonzero(params.selects(pool)).tolist():
        mistake = _mistake(rows[index], params, ctx)
        if mistake:
            keep[index] = False
            ctx.because(rows[index], mistake)
    return pool.keep(keep)


def _mistake(row: Row, params: Params, ctx: ActionContext) -> str:
    if params.answers:
        failed = failing(ctx.passes(row), "content")
        if failed:
            return f"wrong by {failed[0].split('#', 1)[0]}"
    if params.arithmetic and any(wrong_sums(m.content) for m in row.messages if m.role == "assistant"):
        return "states a wrong sum"
    return ""
