"""Train more or less often on the rows of some leaves, or on rows of no leaf (plain chat)."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import Field

from autosft.actions.context import ActionContext
from autosft.actions.params import ActionParams, Name
from autosft.errors import ActionError
from autosft.pool import Pool

EXAMPLE: dict[str, Any] = {"factors": {"lowercase": 2.0}, "plain": 0.5}
Factor = Annotated[float, Field(ge=0, le=10)]


class Params(ActionParams):
    """Factors on present row weights: above 1 upsamples, below 1 downsamples, 0 leaves out."""

    factors: Annotated[dict[Name, Factor], Field(max_length=200)] = Field(
        default_factory=dict, description="Leaf -> factor."
    )
    plain: Factor = Field(1.0, description="Factor on rows without a leaf.")


def apply(pool: Pool, params: Params, ctx: ActionContext) -> Pool:
    """Return the pool with the leaves' row weights multiplied.

    Raises:
        ActionError: A leaf has no rows, or no row keeps a weight.
    """
    present = set(pool.leaves)
    for leaf in params.factors:
        if leaf not in present:
            raise ActionError(
                f"no row of leaf {leaf!r}",
                where="factors",
                hint=f"leaves: {', '.join(sorted(name for name in present if name)) or 'none'}",
            )
    factors = [params.plain if leaf is None else params.factors.get(leaf, 1.0) for leaf in pool.leaves]
    weights = pool.weights * np.array(factors)
    if not (weights > 0).any():
        raise ActionError("no row would keep a weight above 0", where="factors")
    return pool.with_weights(weights)
