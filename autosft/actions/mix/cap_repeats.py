"""Cap how often one conversation, prompt or response is trained on, copies counted together."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from autosft.actions.context import ActionContext
from autosft.actions.params import ActionParams
from autosft.engine.normal import normal_words
from autosft.pool import Pool, base_id
from autosft.types import Row

EXAMPLE: dict[str, Any] = {"of": "prompt", "most": 2.0}
_HALVINGS = 200


class Params(ActionParams):
    """The cap, as a multiple of the average. Case, punctuation and spacing do not make texts different."""

    of: Literal["row", "prompt", "response"] = Field("row", description="What counts as the same.")
    most: float = Field(
        2.0, ge=1, le=20, description="No group is trained on more often than this times the average one."
    )


def apply(pool: Pool, params: Params, ctx: ActionContext) -> Pool:
    """Return the pool with the weights of groups above the cap scaled down to it; no row is dropped."""
    _, group = np.unique([_key(row, params.of) for row in pool.rows()], return_inverse=True)
    totals = np.bincount(group, weights=pool.weights).astype(np.float64)
    cap = _cap(totals[totals > 0], params.most)
    factor = np.divide(cap, totals, out=np.ones_like(totals), where=totals > cap)
    for index in np.flatnonzero(factor[group] < 1).tolist():
        ctx.because(pool.ids[index], f"{params.of} trained on too often")
    return pool.with_weights(pool.weights * factor[group])


def _cap(totals: NDArray[np.float64], most: float) -> float:
    """Return the cap c for which c = most * mean(min(totals, c)): the average is that after capping."""
    if not len(totals) or totals.max() <= most * totals.mean():
        return float("inf")
    low, high = float(totals.min()), float(totals.max())
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if most * np.minimum(totals, middle).mean() >= middle:
            low = middle
        else:
            high = middle
    return low


def _key(row: Row, of: str) -> str:
    if of == "row":
        return base_id(row.id)
    turns = [m for m in row.messages if (m.role == "assistant") == (of == "response")]
    return "\x1e".join(" ".join(normal_words(m.content)) for m in turns)
