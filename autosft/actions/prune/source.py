"""Drop all rows of some sources."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import Field

from autosft.actions.context import ActionContext
from autosft.actions.params import ActionParams, Name
from autosft.errors import ActionError
from autosft.pool import Pool

EXAMPLE: dict[str, Any] = {"sources": ["chat"]}


class Params(ActionParams):
    """Sources to drop."""

    sources: Annotated[list[Name], Field(min_length=1, max_length=200)]


def apply(pool: Pool, params: Params, ctx: ActionContext) -> Pool:
    """Return the pool without the sources.

    Raises:
        ActionError: None of them is in the pool.
        EmptyPoolError: No row would be left.
    """
    wanted, present = set(params.sources), set(pool.sources)
    if not wanted & present:
        raise ActionError("none of the sources is in the pool", hint=f"sources: {', '.join(sorted(present))}")
    keep = np.array([source not in wanted for source in pool.sources])
    for row_id, source, kept in zip(pool.ids, pool.sources, keep.tolist(), strict=True):
        if not kept:
            ctx.because(row_id, f"source {source}")
    return pool.keep(keep)
