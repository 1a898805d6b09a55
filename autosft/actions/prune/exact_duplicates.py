"""Drop copies: of the same conversation, or of the same prompt."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from pydantic import Field

from autosft.actions.context import ActionContext, failing
from autosft.actions.params import RowFilter
from autosft.engine.normal import normal_words
from autosft.pool import Pool
from autosft.types import Row

EXAMPLE: dict[str, Any] = {"match": "row"}


class Params(RowFilter):
    """What counts as equal; letter case, punctuation and spacing do not. Of equal rows one stays."""

    match: Literal["row", "prompt"] = Field(
        "row", description="Equal in all turns, or in all but the replies."
    )


def apply(pool: Pool, params: Params, ctx: ActionContext) -> Pool:
    """Return the pool with one row of each set of equals: the first that passes, else the first."""
    keep = np.ones(len(pool), dtype=bool)
    kept: dict[str, int] = {}
    rows = pool.rows()
    for index in np.flatnonzero(params.selects(pool)).tolist():
        key = _key(rows[index], params.match)
        if key not in kept:
            kept[key] = index
            continue
        loser = index
        if _passes(rows[index], ctx) and not _passes(rows[kept[key]], ctx):
            loser, kept[key] = kept[key], index
        keep[loser] = False
        ctx.because(rows[loser], f"copy of another {params.match}")
    return pool.keep(keep)


def _key(row: Row, match: str) -> str:
    turns = [m for m in row.messages if match == "row" or m.role != "assistant"]
    return "\x1e".join(f"{m.role}\x1f{' '.join(normal_words(m.content))}" for m in turns)


def _passes(row: Row, ctx: ActionContext) -> bool:
    return not failing(ctx.passes(row))
