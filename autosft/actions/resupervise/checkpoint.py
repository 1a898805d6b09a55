"""Replace responses by a checkpoint's own answers: of n samples the shortest that passes everything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from pydantic import Field

from autosft.actions.context import ActionContext, failing
from autosft.actions.params import Name, VerdictFilter
from autosft.errors import ActionError
from autosft.pool import Pool, base_id, made_row
from autosft.types import Row

EXAMPLE: dict[str, Any] = {"artifact": "0123456789abcdef01234567", "rows": "failing"}
KIND = "resupervise/checkpoint"
# Its artifact is made for it; nobody can propose it from the menu alone.
PROPOSED = False


class Params(VerdictFilter):
    """Which answers, and for which rows. The answers lie in an artifact, so a rebuild never samples again."""

    artifact: Name = Field(description="Fingerprint of a `samples` artifact.")
    rows: Literal["failing", "all"] = Field(
        "failing", description="Rows that fail, or also passing ones where a sample is shorter."
    )
    drop_failures: bool = Field(
        False, description="Drop the failing rows that were sampled and got no passing answer."
    )


def apply(pool: Pool, params: Params, ctx: ActionContext) -> Pool:
    """Return the pool with new responses, each passing all requirements of its row.

    Rows without requirements stay: nothing says which of their answers is good.

    Raises:
        ActionError: There is no such artifact, or it holds answers to none of the pool's rows.
        EmptyPoolError: No row would be left.
    """
    answers = ctx.samples(params.artifact)
    if not answers.keys() & {base_id(row_id) for row_id in pool.ids}:
        raise ActionError(
            "the samples answer no row of this pool",
            where=f"params.artifact {params.artifact!r}",
            hint="sample the rows of this pool",
        )
    rows = pool.rows()
    made: dict[int, Row] = {}
    keep = np.ones(len(pool), dtype=bool)
    for index in np.flatnonzero(params.selects(pool)).tolist():
        row = rows[index]
        given = answers.get(base_id(row.id))
        failed = params.counted(row, failing(ctx.passes(row), params.checks))
        if given is None or not row.requirements or not (failed or params.rows == "all"):
            continue
        ctx.tally["rows sampled"] = ctx.tally.get("rows sampled", 0) + 1
        new = _shortest(row, given, ctx)
        if new is not None and (failed or len(new.response) < len(row.response)):
            made[index] = new
            ctx.because(row, "answered by a checkpoint")
        elif failed and params.drop_failures:
            keep[index] = False
            ctx.because(row, f"no sample passes {failed[0]}")
    return pool.replace(list(made), list(made.values())).keep(keep)


def _shortest(row: Row, answers: Sequence[str], ctx: ActionContext) -> Row | None:
    """Return the row with the shortest passing answer that is not the present one; ties go to the first."""
    for answer in sorted(dict.fromkeys(text.strip() for text in answers), key=len):
        if not answer or answer == row.response:
            continue
        new = made_row(row, response=answer, made_by=KIND, method="replace", verdicts={})
        verdicts = ctx.passes(new)
        if all(verdicts.values()):
            return made_row(row, response=answer, made_by=KIND, method="replace", verdicts=verdicts)
    return None
