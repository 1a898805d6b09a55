"""Replace wrong responses by a program's right ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import Field

from autosft.actions.context import ActionContext, failing
from autosft.actions.params import Name, VerdictFilter
from autosft.actions.repair.verifier_edit import edited_text
from autosft.pool import Pool, made_row
from autosft.types import Row

EXAMPLE: dict[str, Any] = {"program": "lab"}
KIND = "resupervise/program"


class Params(VerdictFilter):
    """Which program answers, and for which rows: those that fail."""

    program: Name = Field(description="Name of a program the campaign offers.")
    mend_form: bool = Field(True, description="Edit a right answer that fails the form, as repair does.")
    drop_failures: bool = Field(False, description="Drop the rows that the program cannot make pass.")


def apply(pool: Pool, params: Params, ctx: ActionContext) -> Pool:
    """Return the pool with new responses, each passing all requirements of its row.

    Raises:
        ActionError: No such program.
        EmptyPoolError: No row would be left.
    """
    program = ctx.program(params.program)
    rows = pool.rows()
    made: dict[int, Row] = {}
    keep = np.ones(len(pool), dtype=bool)
    for index in np.flatnonzero(params.selects(pool)).tolist():
        row = rows[index]
        if not params.counted(row, failing(ctx.passes(row), params.checks)):
            continue
        new = _answered(row, program.correct(row), ctx, params.mend_form)
        if new is not None:
            made[index] = new
            ctx.because(row, f"answered by {program.name}")
        elif params.drop_failures:
            keep[index] = False
            ctx.because(row, f"{program.name} has no passing answer")
    return pool.replace(list(made), list(made.values())).keep(keep)


def _answered(row: Row, answer: str | None, ctx: ActionContext, mend_form: bool) -> Row | None:
    """Return the row with the answer if it passes everything, its form mended where that is allowed."""
    if answer is None:
        return None
    new = made_row(row, response=answer, made_by=KIND, method="replace", verdicts={})
    verdicts = ctx.passes(new)
    if mend_form and not all(verdicts.values()) and not failing(verdicts, "content"):
        mended = edited_text(new)
        if mended is not None:
            new = made_row(row, response=mended, made_by=KIND, method="replace", verdicts={})
            verdicts = ctx.passes(new)
    if not all(verdicts.values()) or new.response == row.response:
        return None
    return made_row(row, response=new.response, made_by=KIND, method="replace", verdicts=verdicts)
