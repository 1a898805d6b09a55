"""Add new rows for a leaf, written by a program; each passes its checks and is unlike the rows there are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from pydantic import Field

from autosft.actions.context import ActionContext
from autosft.actions.decontaminate import scan
from autosft.actions.params import ActionParams, Name
from autosft.engine.near import near_duplicates
from autosft.errors import ActionError
from autosft.pool import Pool
from autosft.types import Row

EXAMPLE: dict[str, Any] = {"program": "lab", "leaf": "json", "rows": 50}
KIND = "synthesize/template"


class Params(ActionParams):
    """Which program writes how many rows for which leaf."""

    program: Name = Field(description="Name of a program the campaign offers.")
    leaf: Name
    rows: int = Field(100, ge=1, le=20_000)
    seed: int = Field(0, ge=0, le=2**31 - 1, description="Another seed writes other rows.")
    source: Name = Field("synthetic", description="Source label of the new rows.")
    place: Literal["spread", "file"] = Field(
        "spread", description="New rows all over the budget, or where the base order puts the file's end."
    )
    threshold: float = Field(
        0.95, ge=0.5, le=1, description="Trigram overlap with another row that bars a new one."
    )


def apply(pool: Pool, params: Params, ctx: ActionContext) -> Pool:
    """Return the pool with the rows that get through every gate added at the end.

    Raises:
        ActionError: No such program, or it writes nothing for this leaf.
    """
    written = ctx.program(params.program).write(params.leaf, params.rows, params.seed)
    if not written:
        raise ActionError(
            f"program {params.program!r} writes no row for leaf {params.leaf!r}", where="params.leaf"
        )
    passing: list[Row] = []
    for row in written:
        verdicts = ctx.passes(row)
        if verdicts and all(verdicts.values()) and row.leaf == params.leaf:
            passing.append(
                replace(row, source=params.source, parent=None, made_by=KIND, method="new", verdicts=verdicts)
            )
    clean = _without_evaluation_text(passing, ctx)
    texts = [_text(row) for row in (*pool.rows(), *clean)]
    found = near_duplicates(texts, params.threshold)[len(pool) :]
    admitted = [row for row, earlier in zip(clean, found.tolist(), strict=True) if earlier < 0]
    # The yield of each gate, in the order in which rows meet them.
    ctx.tally["written"] = len(written)
    ctx.tally["failed its checks"] = len(written) - len(passing)
    ctx.tally["evaluation text"] = len(passing) - len(clean)
    ctx.tally["near-duplicate"] = len(clean) - len(admitted)
    ctx.tally["admitted"] = len(admitted)
    for row in admitted:
        ctx.because(row, f"new row for {params.leaf}")
    return _spread(pool.append(admitted), len(pool), params.place)


def _without_evaluation_text(rows: list[Row], ctx: ActionContext) -> list[Row]:
    """Return the rows that hold no text of a dev suite; held-out suites are left to the build (I6)."""
    indexes = [index for index in ctx.benchmarks if not index.held_out]
    if not rows or not indexes:
        return rows
    # Numbered ids of the pool do not matter to the scan, which reads texts only.
    hit = np.zeros(len(rows), dtype=bool)
    for found in scan(Pool.from_rows(rows), indexes).values():
        hit |= found
    return [row for row, drop in zip(rows, hit.tolist(), strict=True) if not drop]


def _spread(pool: Pool, first_new: int, place: str) -> Pool:
    """Place the new rows; left to the order of the file they would all train last, at the lowest rate."""
    if place == "file":
        return pool
    keys, jitter = pool.order_keys.copy(), pool.order_jitter.copy()
    keys[first_new:], jitter[first_new:] = 0.5, 1.0
    return pool.with_order(keys, jitter)


def _text(row: Row) -> str:
    return "\n".join(m.content for m in row.messages)
