"""Drop rows that are too short or too long, in training tokens."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from autosft.actions.context import ActionContext
from autosft.actions.params import RowFilter
from autosft.pool import Pool

EXAMPLE: dict[str, Any] = {"of": "response", "min_tokens": 2}


class Params(RowFilter):
    """Bounds on the tokens of a row or of its replies (end-of-turn token included), after truncation."""

    of: Literal["row", "response"] = "row"
    min_tokens: int = Field(0, ge=0, le=1_000_000)
    max_tokens: int = Field(1_000_000, ge=1, le=1_000_000)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min_tokens > self.max_tokens:
            raise ValueError("min_tokens is above max_tokens")
        return self


def apply(pool: Pool, params: Params, ctx: ActionContext) -> Pool:
    """Return the pool without the rows out of bounds.

    Raises:
        EmptyPoolError: No row would be left.
    """
    tokens, loss = ctx.encoder.counts(pool)
    measured = tokens if params.of == "row" else loss
    selected = params.selects(pool)
    short, long = selected & (measured < params.min_tokens), selected & (measured > params.max_tokens)
    for mask, reason in ((short, "too short"), (long, "too long")):
        for index in mask.nonzero()[0].tolist():
            ctx.because(pool.ids[index], reason)
    return pool.keep(~(short | long))
