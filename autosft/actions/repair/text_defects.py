"""Mend defects of text: mojibake, control characters, open code fences, cut-off ends, order of roles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from autosft.actions.context import ActionContext
from autosft.actions.params import RowFilter
from autosft.actions.repair._defects import close_fence, cut_tail, drop_controls, order_roles, undo_mojibake
from autosft.pool import Pool, made_row
from autosft.types import Message, Row

EXAMPLE: dict[str, Any] = {"defects": ["mojibake", "control_characters"]}
KIND = "repair/text_defects"
#: The verdict that admits a mended row besides those of its requirements: no defect is found in it any more.
VERDICT = "check:text_defects"
Defect = Literal["role_order", "control_characters", "mojibake", "open_fence", "cut_off"]
# In this order: broken bytes hide fences and ends; a cut may not split a fence that is about to be closed.
_IN_PROMPTS: dict[str, Callable[[str], str]] = {
    "mojibake": undo_mojibake,
    "control_characters": drop_controls,
}
_IN_REPLIES: dict[str, Callable[[str], str]] = {"open_fence": close_fence, "cut_off": cut_tail}


class Params(RowFilter):
    """Which defects are mended. A row is changed only if all its requirements pass afterwards."""

    defects: Annotated[list[Defect], Field(min_length=1, max_length=5)] = Field(
        ["role_order", "control_characters", "mojibake", "open_fence", "cut_off"]
    )
    drop_failures: bool = Field(
        False, description="Drop rows with a defect whose requirements fail after mending."
    )


def apply(pool: Pool, params: Params, ctx: ActionContext) -> Pool:
    """Return the pool with mended rows.

    Raises:
        EmptyPoolError: No row would be left.
    """
    rows = pool.rows()
    made: dict[int, Row] = {}
    keep = np.ones(len(pool), dtype=bool)
    for index in np.flatnonzero(params.selects(pool)).tolist():
        row = rows[index]
        messages, found = mended(row.messages, params.defects)
        if not found:
            continue
        new = made_row(row, messages=messages, made_by=KIND, method="edit", verdicts={})
        verdicts = {**ctx.passes(new), VERDICT: not mended(messages, params.defects)[1]}
        if all(verdicts.values()):
            made[index] = made_row(row, messages=messages, made_by=KIND, method="edit", verdicts=verdicts)
            ctx.because(row, f"mended {found[0].replace('_', ' ')}")
        elif params.drop_failures:
            keep[index] = False
            ctx.because(row, f"{found[0].replace('_', ' ')}, fails when mended")
    return pool.replace(list(made), list(made.values())).keep(keep)


def mended(messages: tuple[Message, ...], defects: Sequence[str]) -> tuple[tuple[Message, ...], list[str]]:
    """Return the turns without the defects, and the defects that were found."""
    found: list[str] = []
    for name, change in (_IN_PROMPTS | _IN_REPLIES).items():
        if name not in defects:
            continue
        changed = tuple(
            Message(m.role, change(m.content)) if name in _IN_PROMPTS or m.role == "assistant" else m
            for m in messages
        )
        if changed != messages:
            found.append(name)
            messages = changed
    if "role_order" in defects:
        ordered = order_roles(messages)
        if ordered != messages:
            found.append("role_order")
            messages = ordered
    return messages, found
