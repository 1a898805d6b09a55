"""Edit failing responses as little as possible; only edits after which all requirements pass are kept."""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import Field

from autosft.actions.context import ActionContext, failing
from autosft.actions.params import VerdictFilter
from autosft.actions.repair._edits import EDITS
from autosft.pool import Pool, made_row
from autosft.taxonomy import verify
from autosft.types import CONTENT_PREFIXES, Row

EXAMPLE: dict[str, Any] = {"leaves": ["lowercase"]}
KIND = "repair/verifier_edit"
PASSES = 2
_RANK = {requirement: rank for rank, requirement in enumerate(EDITS)}


class Params(VerdictFilter):
    """Which failing rows are edited. Facts never are: a row that states them wrongly stays as it is."""

    drop_failures: bool = Field(False, description="Drop the failing rows that no edit mends.")


def apply(pool: Pool, params: Params, ctx: ActionContext) -> Pool:
    """Return the pool with edited responses, each passing all requirements of its row.

    Raises:
        EmptyPoolError: No row would be left.
    """
    rows = pool.rows()
    made: dict[int, Row] = {}
    keep = np.ones(len(pool), dtype=bool)
    for index in np.flatnonzero(params.selects(pool)).tolist():
        row = rows[index]
        failed = params.counted(row, failing(ctx.passes(row), params.checks))
        if not failed:
            continue
        new = edited(row, ctx)
        if new is not None:
            made[index] = new
            ctx.because(row, f"edited for {failed[0]}")
        elif params.drop_failures:
            keep[index] = False
            ctx.because(row, f"no edit for {failed[0]}")
    return pool.replace(list(made), list(made.values())).keep(keep)


def edited(row: Row, ctx: ActionContext) -> Row | None:
    """Return the row with a response that passes everything, or None where no edit gets there."""
    if failing(ctx.passes(row), "content") or not any(m.role == "assistant" for m in row.messages):
        return None
    text = edited_text(row)
    if text is None:
        return None
    new = made_row(row, response=text, made_by=KIND, method="edit", verdicts={})
    return made_row(row, response=text, made_by=KIND, method="edit", verdicts=ctx.passes(new))


def edited_text(row: Row) -> str | None:
    """Return an edited response that passes all requirements of a row whose content passes, or None."""
    by_rank = sorted(row.requirements, key=lambda r: _RANK.get(r.id, len(_RANK)))
    form = [r for r in by_rank if not r.id.startswith(CONTENT_PREFIXES)]
    # An edit may cost the fact: such a candidate is passed over for the next one.
    content = [r for r in row.requirements if r.id.startswith(CONTENT_PREFIXES)]
    text = row.response
    for _ in range(PASSES):
        for requirement in form:
            if verify(requirement, row.prompt, text) or requirement.id not in EDITS:
                continue
            for candidate in EDITS[requirement.id](row.prompt, text, requirement.kwargs):
                if all(verify(r, row.prompt, candidate) for r in (requirement, *content)):
                    text = candidate
                    break
        if text != row.response and all(verify(r, row.prompt, text) for r in row.requirements):
            return text
    return None
