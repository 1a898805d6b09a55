"""Reword a prompt's instruction sentence, frame it or move it to the front; the response must still pass."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from pydantic import Field

from autosft.actions.context import ActionContext
from autosft.actions.params import RowFilter
from autosft.actions.repair._wordings import FRAMES, WORDINGS
from autosft.pool import Pool, made_row, with_prompt
from autosft.types import CONTENT_PREFIXES, Requirement, Row

EXAMPLE: dict[str, Any] = {"change": "reword", "frac": 0.5}
KIND = "repair/prompt_reword"
_SENTENCES = re.compile(r"(?<=[.!?\"])\s+|\n+")


class Params(RowFilter):
    """What happens to the last of a prompt's sentences (two or more): the one that states the requirement."""

    change: Literal["reword", "frame", "first", "vary"] = Field(
        "vary",
        description="Other words, a reminder before it, move it to the front, or one of these at random.",
    )
    frac: float = Field(1.0, gt=0, le=1, description="Fraction of the rows that are changed.")


def apply(pool: Pool, params: Params, ctx: ActionContext) -> Pool:
    """Return the pool with reworded prompts; rows without a form requirement or a separate sentence stay."""
    rng = ctx.rng(KIND, params.model_dump())
    draws = rng.random((len(pool), 3))
    rows = pool.rows()
    made: dict[int, Row] = {}
    for index in np.flatnonzero(params.selects(pool) & (draws[:, 0] < params.frac)).tolist():
        row = rows[index]
        prompt = _changed(row, params.change, float(draws[index, 1]), float(draws[index, 2]))
        if prompt is None or prompt == row.prompt:
            continue
        messages = with_prompt(row.messages, prompt, where=f"row {row.id}")
        new = made_row(row, messages=messages, made_by=KIND, method="edit", verdicts={})
        verdicts = ctx.passes(new)
        if all(verdicts.values()):
            made[index] = made_row(row, messages=messages, made_by=KIND, method="edit", verdicts=verdicts)
            ctx.because(row, f"prompt changed ({params.change})")
    return pool.replace(list(made), list(made.values()))


def _changed(row: Row, change: str, which: float, wording: float) -> str | None:
    form = [r for r in row.requirements if not r.id.startswith(CONTENT_PREFIXES)]
    parts = [part for part in _SENTENCES.split(row.prompt) if part.strip()]
    # Only one requirement and its one sentence: with several it is unclear which sentence states which.
    if len(form) != 1 or len(parts) < 2:
        return None
    request, instruction = row.prompt[: row.prompt.rindex(parts[-1])].rstrip(), parts[-1].strip()
    options = ["reword", "frame", "first"] if change == "vary" else [change]
    chosen = options[int(which * len(options))]
    if chosen == "first":
        return f"{instruction} {request}"
    if chosen == "frame":
        return f"{request} {FRAMES[int(wording * len(FRAMES))].format(instruction=instruction)}"
    worded = _wordings(form[0])
    return f"{request} {worded[int(wording * len(worded))]}" if worded else None


def _wordings(requirement: Requirement) -> list[str]:
    values = {name: _say(value) for name, value in requirement.kwargs.items()}
    return [_fill(template, values) for template in WORDINGS.get(requirement.id, ())]


def _say(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _fill(template: str, values: Mapping[str, str]) -> str:
    """Fill a template; braces inside the values are data and stay."""
    return re.sub(r"\{(\w+)\}", lambda m: values.get(m.group(1), m.group()), template)
