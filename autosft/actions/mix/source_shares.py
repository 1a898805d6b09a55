"""Set the share of training tokens of some sources; the others share the rest as they did before."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from autosft.actions.context import ActionContext
from autosft.actions.mix._weights import group_tokens, with_shares
from autosft.actions.params import ActionParams, Name, Share
from autosft.errors import ActionError
from autosft.pool import Pool

EXAMPLE: dict[str, Any] = {"shares": {"chat": 0.2}}


class Params(ActionParams):
    """Source -> its share of training tokens."""

    shares: Annotated[dict[Name, Share], Field(min_length=1, max_length=200)]


def apply(pool: Pool, params: Params, ctx: ActionContext) -> Pool:
    """Return the pool with row weights that give the sources these shares.

    Raises:
        ActionError: A source has no tokens in the pool, or the shares do not add up.
    """
    totals = group_tokens(pool.sources, pool.weights, ctx.tokens(pool))
    for name in params.shares:
        if totals.get(name, 0.0) <= 0:
            raise ActionError(
                f"source {name!r} has no weighted tokens",
                where="shares",
                hint=f"sources: {', '.join(sorted(totals))}",
            )
    given, rest = (
        sum(params.shares.values()),
        [name for name in totals if name not in params.shares and totals[name] > 0],
    )
    if given > 1 + 1e-9 or (not rest and abs(given - 1) > 1e-9) or (rest and given >= 1):
        raise ActionError(
            f"the shares add up to {given:.4g}",
            where="shares",
            hint="less than 1 where other sources remain, exactly 1 where all are named",
        )
    other = sum(totals[name] for name in rest)
    shares = dict(params.shares) | {name: (1 - given) * totals[name] / other for name in rest}
    return with_shares(pool, pool.sources, totals, shares)
