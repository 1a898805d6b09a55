"""Rows and responses that a model or a program made, frozen as an artifact: a rebuild never asks again.

An artifact of kind `made` holds `rows.jsonl`: one object a row with `parent` (row id, or null for a new row),
`messages`, `requirements`, `leaf`, and `receipts` (what admitted it). Whatever a receipt says,
each row's verifiers run again where it is applied.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from autosft.actions.context import ActionContext
from autosft.errors import ActionError, ArtifactError, AutosftError
from autosft.pool import Pool, made_row, new_row
from autosft.pool.rows import base_id
from autosft.types import Method, Requirement, Row

KIND = "made"
FILE = "rows.jsonl"


def read_made(ctx: ActionContext, artifact: str) -> list[Mapping[str, Any]]:
    """Return an artifact's rows as plain data.

    Raises:
        ActionError: There is no such artifact, or it cannot be read.
    """
    where = f"params.artifact {artifact!r}"
    if ctx.artifacts is None:
        raise ActionError("made rows need an artifact store", where=where)
    try:
        lines = ctx.artifacts.load(KIND, artifact).file(FILE).read_bytes().splitlines()
        return [orjson.loads(line) for line in lines]
    except (ArtifactError, OSError, orjson.JSONDecodeError) as error:
        raise ActionError(f"no made rows: {error}", where=where) from None


def new_rows(data: list[Mapping[str, Any]], source: str, kind: str, ctx: ActionContext) -> list[Row]:
    """Return the new rows among an artifact's that pass all their requirements (I7)."""
    rows = []
    for line in data:
        if line.get("parent") is not None:
            continue
        try:
            row = new_row(
                source,
                [(m["role"], m["content"]) for m in line["messages"]],
                requirements=[Requirement(r["id"], r["kwargs"]) for r in line["requirements"]],
                leaf=line["leaf"],
                made_by=kind,
            )
            verdicts = ctx.passes(row)
        except (AutosftError, KeyError, TypeError) as error:
            raise ActionError(f"a made row cannot be read: {error}", where=kind) from None
        if verdicts and all(verdicts.values()):
            rows.append(_with_verdicts(row, verdicts))
    return rows


def replaced(
    pool: Pool, data: list[Mapping[str, Any]], kind: str, method: Method, ctx: ActionContext, why: str
) -> Pool:
    """Return the pool with an artifact's responses in place of their parents', where they pass all checks."""
    texts = {str(line["parent"]): str(line["messages"][-1]["content"]) for line in data if line.get("parent")}
    made: dict[int, Row] = {}
    for index, row_id in enumerate(pool.ids):
        text = texts.get(row_id, texts.get(base_id(row_id)))
        if text is None:
            continue
        row = pool.row(index)
        new = made_row(row, response=text, made_by=kind, method=method, verdicts={})
        verdicts = ctx.passes(new)
        if new.response == row.response or not verdicts or not all(verdicts.values()):
            continue
        made[index] = made_row(row, response=text, made_by=kind, method=method, verdicts=verdicts)
        ctx.because(row, why)
    return pool.replace(list(made), list(made.values()))


def _with_verdicts(row: Row, verdicts: Mapping[str, bool]) -> Row:
    from dataclasses import replace

    return replace(row, verdicts=dict(verdicts))
