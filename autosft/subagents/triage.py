"""The executor role: reads training output in a context of its own, says what to do with failures.

It may only retry, resume, lower the micro-batch or abandon, only for seeds that failed. Everyone else gets
its receipt: a note and the choices, never the logs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from autosft.llm import Part, render
from autosft.llm.text import as_json
from autosft.subagents.conversation import Abstained, Question
from autosft.subagents.office import Office
from autosft.subagents.tools import read_args

Choice = Literal["retry", "resume", "micro_batch", "abandon"]


class _Receipt(BaseModel):
    model_config = ConfigDict(extra="forbid")
    actions: dict[str, Choice] = Field(default_factory=dict)
    note: Annotated[str, Field(max_length=600)] = ""


def triage(
    office: Office, number: int, output: Sequence[Mapping[str, Any]], failed: Sequence[int]
) -> tuple[dict[int, Choice], str]:
    """Ask what to do after a round's runs.

    Args:
        office: Asks the role.
        number: Round.
        output: Training output, one mapping a seed.
        failed: Seeds that failed.

    Returns:
        Choice for each failed seed (`abandon` where the role names none or fails), and its note.
    """

    def parse(data: Mapping[str, Any]) -> _Receipt:
        receipt: _Receipt = read_args(_Receipt, data)
        return receipt

    question = Question(
        role="executor",
        round=number,
        purpose="execution",
        instructions=render("executor", data_rule=render("data_rule")),
        parts=tuple(Part("training_output", f"Run (data):\n{as_json(dict(run))}") for run in output),
        schema=_Receipt.model_json_schema(),
        parse=parse,
    )
    try:
        receipt = office.ask(question, "execute")
    except Abstained as error:
        return dict.fromkeys(failed, "abandon"), f"no usable answer: {error}"[:600]
    chosen: dict[int, Choice] = {seed: receipt.actions.get(str(seed), "abandon") for seed in failed}
    return chosen, receipt.note
