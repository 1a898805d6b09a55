"""Train on the rows exactly in the order they stand in, or in the reverse one, without chance."""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import Field

from autosft.actions.context import ActionContext
from autosft.actions.order._places import token_places
from autosft.actions.params import ActionParams
from autosft.pool import Pool

EXAMPLE: dict[str, Any] = {"reverse": False}


class Params(ActionParams):
    """The direction. Copies of a row are trained on at its place."""

    reverse: bool = Field(False, description="From the last row to the first.")


def apply(pool: Pool, params: Params, ctx: ActionContext) -> Pool:
    """Return the pool with each row placed where its tokens lie in the file."""
    sequence = np.arange(len(pool))
    amount = ctx.tokens(pool) * pool.weights
    return pool.with_order(token_places(sequence[::-1] if params.reverse else sequence, amount), 0.0)
