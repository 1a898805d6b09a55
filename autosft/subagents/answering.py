"""Failing responses answered anew: by a teacher, or by the parent's own checkpoint (rejection sampling)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import orjson
from pydantic import BaseModel, ConfigDict, Field

from autosft.actions.context import failing
from autosft.errors import ActionError, AutosftError
from autosft.llm import Part, render, shown
from autosft.pool import made_row
from autosft.pool.rows import clean_text
from autosft.subagents.conversation import Abstained, Question
from autosft.subagents.rows import spread
from autosft.subagents.tools import read_args
from autosft.subagents.workshop import Batch, Workshop, clean, freeze, verified
from autosft.types import ActionCall, GenerateSettings, Row

KIND = "resupervise/made"
ROWS_PER_CALL = 10
MOST_NEW_TOKENS = 128


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")
    row: Annotated[int, Field(ge=0)]
    response: Annotated[str, Field(min_length=1, max_length=8_000)]


class _Answers(BaseModel):
    model_config = ConfigDict(extra="forbid")
    answers: Annotated[list[_Answer], Field(max_length=4 * ROWS_PER_CALL)]


def teach(request: ActionCall, shop: Workshop) -> ActionCall:
    """Have a teacher answer failing rows; return the action that replaces their responses.

    Raises:
        ActionError: No row fails, or no answer passes.
        SpendCapError: The campaign's cap is used up.
    """
    rows = _failing(request, shop, shop.office.settings.teacher_rows)
    batch = Batch()
    for start in range(0, len(rows), ROWS_PER_CALL):
        part = rows[start : start + ROWS_PER_CALL]
        try:
            answers = _ask_teacher(part, shop)
        except Abstained:
            batch.counts["no usable answer"] = batch.counts.get("no usable answer", 0) + 1
            continue
        made = [_new(part[i], text) for i, text in answers.items() if i < len(part)]
        batch.kept += clean(verified(made, batch, shop.ctx), batch, shop.benchmarks)
    return freeze(shop, request, batch, KIND)


def _ask_teacher(rows: Sequence[Row], shop: Workshop) -> dict[int, str]:
    listed = [
        {
            "row": i,
            "prompt": shown(row.prompt, 2_000),
            "requirements": [f"{r.id} {dict(r.kwargs)}" for r in row.requirements],
        }
        for i, row in enumerate(rows)
    ]
    question = Question(
        role="teacher",
        round=shop.round,
        purpose="data_action",
        instructions=render("teacher", data_rule=render("data_rule")),
        parts=(Part("data_actions", f"Prompts (data):\n{orjson.dumps(listed).decode()}"),),
        schema=_Answers.model_json_schema(),
        parse=lambda data: read_args(_Answers, data),
    )
    answer: _Answers = shop.office.ask(question, "make")
    return {found.row: found.response for found in reversed(answer.answers)}


def sample(request: ActionCall, shop: Workshop) -> ActionCall:
    """Let the parent's checkpoint answer failing rows several times; keep the shortest passing answer.

    Source: rejection sampling as in "Llama 2" (arXiv:2307.09288), section 3.2.3; a verifier for the reward.

    Raises:
        ActionError: There is no checkpoint, no row fails, or no sample passes.
    """
    if shop.checkpoint is None:
        raise ActionError("there is no checkpoint to sample from", where=request.kind)
    rows = _failing(request, shop, int(request.params["rows"]))
    samples = _generate(rows, request, shop)
    batch = Batch()
    batch.counts["sampled"] = sum(map(len, samples))
    for row, texts in zip(rows, samples, strict=True):
        tries = sorted({text.strip() for text in texts} - {""}, key=lambda text: (len(text), text))
        passing = next((m for m in (_new(row, t) for t in tries) if all(shop.ctx.passes(m).values())), None)
        if passing is None:
            batch.stop(row, "verifier", f"none of {len(texts)} samples passes")
            continue
        batch.kept += clean(verified([passing], batch, shop.ctx), batch, shop.benchmarks)
    return freeze(shop, request, batch, KIND)


def _generate(rows: Sequence[Row], request: ActionCall, shop: Workshop) -> list[list[str]]:
    from autosft.executor.generate import GenerateJob, load_generator
    from autosft.executor.prompts import Prompts

    encoder = shop.ctx.encoder
    ids, tokens, at = [], [], []
    for index, row in enumerate(rows):
        turns = row.messages
        while turns and turns[-1].role == "assistant":
            turns = turns[:-1]
        try:
            encoded = encoder.encode_prompt(turns)
        except AutosftError:
            continue
        ids.append(row.id)
        tokens.append(encoded)
        at.append(index)
    found: list[list[str]] = [[] for _ in rows]
    if not ids or shop.checkpoint is None:
        return found
    settings = GenerateSettings(
        max_new_tokens=MOST_NEW_TOKENS,
        temperature=float(request.params["temperature"]),
        samples_per_item=int(request.params["samples"]),
        batch_size=64,
    )
    prompts = Prompts(ids, tokens, encoder.end_of_turn_id, encoder.pad_id, shop.checkpoint)
    job = GenerateJob(shop.checkpoint, prompts, settings, seed=shop.round, batch_size=64)
    places = dict(zip(ids, at, strict=True))
    for made in load_generator(settings.backend).generate(job, lambda line: None):
        if not made.truncated:
            found[places[made.item]].append(clean_text(made.text))
    return found


def _failing(request: ActionCall, shop: Workshop, most: int) -> list[Row]:
    leaves, checks = request.params["leaves"], str(request.params["checks"])
    rows = [
        row
        for row in shop.pool.rows()
        if (leaves is None or row.leaf in leaves) and row.response and failing(shop.ctx.passes(row), checks)
    ]
    if not rows:
        raise ActionError("no row fails its checks", where=request.kind)
    wanted = min(most, int(request.params["rows"]))
    return [rows[i] for i in spread(range(len(rows)), wanted)]


def _new(row: Row, response: str) -> Row:
    return made_row(row, response=response, made_by=KIND, method="replace", verdicts={})
