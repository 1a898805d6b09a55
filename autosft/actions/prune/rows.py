"""Drop single rows by id."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import Field

from autosft.actions.context import ActionContext
from autosft.actions.params import ActionParams, Name
from autosft.errors import ActionError
from autosft.pool import Pool

EXAMPLE: dict[str, Any] = {"ids": ["0123456789abcdef"]}


class Params(ActionParams):
    """Row ids to drop; ids that an earlier action dropped already do no harm."""

    ids: Annotated[list[Name], Field(min_length=1, max_length=10_000)]


def apply(pool: Pool, params: Params, ctx: ActionContext) -> Pool:
    """Return the pool without the rows.

    Raises:
        ActionError: None of the ids is in the pool.
        EmptyPoolError: No row would be left.
    """
    wanted = set(params.ids)
    keep = np.array([row_id not in wanted for row_id in pool.ids])
    if keep.all():
        raise ActionError(
            f"none of the {len(wanted)} ids is in the pool", where="ids", hint="take ids from this pool"
        )
    for row_id in wanted & set(pool.ids):
        ctx.because(row_id, "named by id")
    return pool.keep(keep)
