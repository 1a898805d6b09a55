"""Drop rows that share text with a dev suite; more of them than every build drops by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import Field

from autosft.actions.context import ActionContext
from autosft.actions.decontaminate import SHARE_OF_ITEM, scan
from autosft.actions.params import RowFilter
from autosft.errors import ActionError
from autosft.pool import Pool

EXAMPLE: dict[str, Any] = {"share": 0.2}


class Params(RowFilter):
    """How much of an evaluation text makes a row contaminated. Short texts must be equal as a whole."""

    share: float = Field(
        0.2,
        gt=0,
        le=SHARE_OF_ITEM,
        description="Share of a text's 13-grams that a row may not hold; the build itself uses .5.",
    )


def apply(pool: Pool, params: Params, ctx: ActionContext) -> Pool:
    """Return the pool without the contaminated rows. Held-out suites are left to the build.

    Raises:
        ActionError: There are no digests to compare with.
        EmptyPoolError: No row would be left.
    """
    indexes = [index.stricter(params.share) for index in ctx.benchmarks if not index.held_out]
    if not indexes:
        raise ActionError("there are no digests of dev suites", hint="run it inside a campaign or a build")
    selected, drop = params.selects(pool), np.zeros(len(pool), dtype=bool)
    for name, found in scan(pool, indexes).items():
        hits = found & selected & ~drop
        drop |= hits
        for index in np.flatnonzero(hits).tolist():
            ctx.because(pool.ids[index], f"holds text of {name}")
    return pool.keep(~drop)
