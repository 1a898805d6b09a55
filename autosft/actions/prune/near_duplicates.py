"""Drop rows that are nearly the same as an earlier row."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from pydantic import Field

from autosft.actions.context import ActionContext
from autosft.actions.params import RowFilter
from autosft.engine.near import near_duplicates
from autosft.pool import Pool
from autosft.types import Row

EXAMPLE: dict[str, Any] = {"threshold": 0.85, "of": "row"}


class Params(RowFilter):
    """How alike is too alike: Jaccard similarity of the sets of word trigrams."""

    threshold: float = Field(0.9, ge=0.5, le=1)
    of: Literal["row", "prompt", "response"] = Field("row", description="Which turns are compared.")


def apply(pool: Pool, params: Params, ctx: ActionContext) -> Pool:
    """Return the pool with the first row of each group of near-duplicates."""
    rows = pool.rows()
    chosen = np.flatnonzero(params.selects(pool))
    found = near_duplicates([_text(rows[i], params.of) for i in chosen.tolist()], params.threshold)
    keep = np.ones(len(pool), dtype=bool)
    for index in chosen[found >= 0].tolist():
        keep[index] = False
        ctx.because(rows[index], f"near-duplicate {params.of}")
    return pool.keep(keep)


def _text(row: Row, of: str) -> str:
    return "\n".join(
        m.content for m in row.messages if of == "row" or (m.role == "assistant") == (of == "response")
    )
