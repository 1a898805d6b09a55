"""Train on one leaf or source after the other, each a block as long as its share of the tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from autosft.actions.context import ActionContext, failing
from autosft.actions.params import ActionParams, Names
from autosft.pool import Pool

EXAMPLE: dict[str, Any] = {"by": "source", "sequence": "failing_first"}


class Params(ActionParams):
    """What makes a block, and which comes first; inside a block the order is random."""

    by: Literal["leaf", "source"] = "source"
    sequence: Literal["failing_first", "small_first", "large_first", "name"] = Field(
        "failing_first",
        description="By share of rows failing their requirements, by tokens, or by name; ties by name.",
    )
    last: Names = Field(
        default_factory=list, description="These blocks come last, in this order, whatever the sequence."
    )


def apply(pool: Pool, params: Params, ctx: ActionContext) -> Pool:
    """Return the pool with each group's rows inside its block; rows without a leaf are a block too."""
    labels = pool.sources if params.by == "source" else [leaf or "(none)" for leaf in pool.leaves]
    amount = ctx.tokens(pool) * pool.weights
    total = max(float(amount.sum()), 1e-12)
    keys, jitter, start = np.full(len(pool), 0.5), np.zeros(len(pool)), 0.0
    for name in _sequence(pool, labels, amount, params, ctx):
        members = np.flatnonzero(np.array(labels) == name)
        width = float(amount[members].sum()) / total
        keys[members] = min(1.0, start + width / 2)
        jitter[members] = min(1.0, width)
        for index in members.tolist():
            ctx.because(pool.ids[index], f"block {name}")
        start += width
    return pool.with_order(keys, jitter)


def _sequence(
    pool: Pool, labels: Sequence[str], amount: NDArray[np.float64], params: Params, ctx: ActionContext
) -> list[str]:
    size: dict[str, float] = {}
    for label, tokens in zip(labels, amount.tolist(), strict=True):
        size[label] = size.get(label, 0.0) + tokens
    rank = {name: 0.0 for name in size}
    if params.sequence == "small_first":
        rank = size
    elif params.sequence == "large_first":
        rank = {name: -tokens for name, tokens in size.items()}
    elif params.sequence == "failing_first":
        rank = {name: -share for name, share in _failing_share(pool, labels, ctx).items()}
    last = {name: place for place, name in enumerate(params.last)}
    return sorted(size, key=lambda name: (last.get(name, -1), rank[name], name))


def _failing_share(pool: Pool, labels: Sequence[str], ctx: ActionContext) -> dict[str, float]:
    """Share of each group's rows that fail one of their requirements; rows without any count as passing."""
    rows, bad = dict.fromkeys(labels, 0), dict.fromkeys(labels, 0)
    for row, label in zip(pool.rows(), labels, strict=True):
        rows[label] += 1
        bad[label] += bool(failing(ctx.passes(row)))
    return {name: bad[name] / rows[name] for name in rows}
