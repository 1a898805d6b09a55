"""Add rows that a language model or a program wrote, from their frozen record."""

from __future__ import annotations

from typing import Any

from autosft.actions.context import ActionContext
from autosft.actions.made import new_rows, read_made
from autosft.actions.params import ActionParams, Name
from autosft.pool import Pool

EXAMPLE: dict[str, Any] = {"artifact": "0123456789abcdef01234567"}
KIND = "synthesize/made"
PROPOSED = False


class Params(ActionParams):
    """The artifact that holds the rows, and the source label they get."""

    artifact: Name
    source: Name = "synthetic"


def apply(pool: Pool, params: Params, ctx: ActionContext) -> Pool:
    """Return the pool with the rows that pass all their requirements, spread over the budget.

    Raises:
        ActionError: There is no such artifact.
    """
    rows = new_rows(read_made(ctx, params.artifact), params.source, KIND, ctx)
    for row in rows:
        ctx.because(row, f"written for {row.leaf}")
    grown = pool.append(rows)
    keys, jitter = grown.order_keys.copy(), grown.order_jitter.copy()
    # Left to the order of the file they would all train last, at the lowest rate.
    keys[len(pool) :], jitter[len(pool) :] = 0.5, 1.0
    return grown.with_order(keys, jitter)
