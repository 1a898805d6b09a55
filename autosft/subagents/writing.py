"""The synthesis role: new rows for a leaf from a specification, through verifier, review, other gates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import orjson
from pydantic import BaseModel, ConfigDict, Field

from autosft.errors import ActionError
from autosft.llm import Part, render, shown
from autosft.pool import new_row
from autosft.subagents.conversation import Abstained, Question
from autosft.subagents.tools import read_args
from autosft.subagents.workshop import Batch, Workshop, clean, distinct, freeze, verified
from autosft.types import ActionCall, Requirement, Row

ROWS_PER_CALL = 10
#: Calls in a row that brought no usable row before the role gives up.
MOST_BARREN = 2


class _Written(BaseModel):
    model_config = ConfigDict(extra="forbid")
    prompt: Annotated[str, Field(min_length=1, max_length=4_000)]
    response: Annotated[str, Field(min_length=1, max_length=8_000)]


class _Rows(BaseModel):
    model_config = ConfigDict(extra="forbid")
    rows: Annotated[list[_Written], Field(min_length=1, max_length=4 * ROWS_PER_CALL)]


class _Verdict(BaseModel):
    model_config = ConfigDict(extra="forbid")
    row: Annotated[int, Field(ge=0)]
    keep: bool
    why: Annotated[str, Field(max_length=400)] = ""


class _Verdicts(BaseModel):
    model_config = ConfigDict(extra="forbid")
    verdicts: Annotated[list[_Verdict], Field(max_length=8 * ROWS_PER_CALL)]


def write(request: ActionCall, shop: Workshop) -> ActionCall:
    """Have rows written for a leaf until the quota is met; return the action that adds them.

    Raises:
        ActionError: No such leaf, or nothing usable was written.
        SpendCapError: The campaign's cap is used up.
    """
    leaf = request.params["leaf"]
    if leaf not in shop.taxonomy:
        raise ActionError(f"no leaf {str(leaf)[:60]!r}", where="params.leaf")
    wanted = min(int(request.params["rows"]), shop.office.settings.synthesis_rows)
    batch, barren, call = Batch(), 0, 0
    while len(batch.kept) < wanted and barren < MOST_BARREN:
        try:
            written = _ask_writer(shop, leaf, str(request.params["brief"]), wanted - len(batch.kept), call)
            before = len(batch.kept)
            _admit(written, batch, shop, wanted)
        except Abstained as error:
            batch.counts["no usable answer"] = batch.counts.get("no usable answer", 0) + 1
            if not batch.kept and barren + 1 >= MOST_BARREN:
                raise ActionError(f"nothing was written: {error}", where=f"leaf {leaf}") from None
            before = len(batch.kept)
        barren = barren + 1 if len(batch.kept) == before else 0
        call += 1
    return freeze(shop, request, batch, "synthesize/made")


def _ask_writer(shop: Workshop, leaf: str, brief: str, n: int, call: int) -> list[Row]:
    spec = shop.taxonomy.leaf(leaf)
    instructions = render(
        "synthesis",
        data_rule=render("data_rule"),
        leaf=leaf,
        description=shown(spec.description, 400),
        verifier=spec.verifier,
        arguments=orjson.dumps(dict(spec.params)).decode(),
        brief=orjson.dumps(shown(brief, 600)).decode(),
        example=orjson.dumps({"prompt": spec.prompt, "response": spec.passes}).decode(),
        n=str(min(n, ROWS_PER_CALL)),
    )
    question = Question(
        role="synthesis",
        round=shop.round,
        purpose="data_action",
        instructions=instructions,
        parts=(Part("data_actions", f"Batch {call + 1}. Write other rows than in earlier batches."),),
        schema=_Rows.model_json_schema(),
        parse=lambda data: read_args(_Rows, data),
    )
    answer: _Rows = shop.office.ask(question, "make")
    requirement = Requirement(spec.verifier, dict(spec.params))
    return [
        new_row(
            "synthetic",
            [("user", row.prompt), ("assistant", row.response)],
            requirements=[requirement],
            leaf=leaf,
            made_by="synthesize/made",
        )
        for row in answer.rows
    ]


def _admit(rows: Sequence[Row], batch: Batch, shop: Workshop, wanted: int) -> None:
    batch.counts["written"] = batch.counts.get("written", 0) + len(rows)
    rows = verified(rows, batch, shop.ctx)
    rows = reviewed(rows, batch, shop) if rows else []
    rows = distinct(rows, batch, shop.pool)
    rows = clean(rows, batch, shop.benchmarks)
    batch.kept += rows[: wanted - len(batch.kept)]


def reviewed(rows: Sequence[Row], batch: Batch, shop: Workshop) -> list[Row]:
    """Pass the rows that an independent reviewer keeps; a row without a verdict is stopped."""
    listed = [
        {
            "row": i,
            "prompt": shown(row.prompt, 1_500),
            "response": shown(row.response, 2_500),
            "requirements": [f"{r.id} {dict(r.kwargs)}" for r in row.requirements],
        }
        for i, row in enumerate(rows)
    ]
    question = Question(
        role="review",
        round=shop.round,
        purpose="data_action",
        instructions=render("review", data_rule=render("data_rule")),
        parts=(Part("data_actions", f"Rows (data):\n{orjson.dumps(listed).decode()}"),),
        schema=_Verdicts.model_json_schema(),
        parse=lambda data: read_args(_Verdicts, data),
    )
    try:
        answer: _Verdicts = shop.office.ask(question, "make")
        verdicts: Mapping[int, _Verdict] = {verdict.row: verdict for verdict in reversed(answer.verdicts)}
        missing = "the reviewer gave no verdict"
    except Abstained as error:
        verdicts, missing = {}, f"no review: {error}"[:300]
    found = []
    for index, row in enumerate(rows):
        verdict = verdicts.get(index)
        if verdict is not None and verdict.keep:
            batch.passed(row, "review", shown(verdict.why, 300) or "kept")
            found.append(row)
        else:
            batch.stop(row, "review", missing if verdict is None else shown(verdict.why, 300))
    batch.counts["review"] = batch.counts.get("review", 0) + len(found)
    return found


def estimate(request: ActionCall, quota: int) -> dict[str, Any]:
    """Return what a request asks for, before anything is made: rows, and calls of each role."""
    rows = min(int(request.params.get("rows", 0)), quota)
    calls = -(-rows // ROWS_PER_CALL)
    return {"kind": request.kind, "rows_requested": rows, "calls": calls}
