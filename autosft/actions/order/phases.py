"""Train on blocks of leaves or sources, each spread over a fraction of the budget."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from autosft.actions.context import ActionContext
from autosft.actions.params import ActionParams, Name
from autosft.errors import ActionError
from autosft.pool import Pool

EXAMPLE: dict[str, Any] = {"by": "leaf", "phases": [{"names": ["lowercase"], "start": 0.0, "end": 0.5}]}


class Phase(ActionParams):
    """A block: groups, and the fractions of the budget where it starts and ends."""

    names: Annotated[
        list[str], Field(min_length=1, max_length=200, description="`(none)`: rows without a leaf.")
    ]
    start: float = Field(ge=0, lt=1)
    end: float = Field(gt=0, le=1)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.start >= self.end:
            raise ValueError("start is not before end")
        return self


class Params(ActionParams):
    """Blocks; rows of groups that none names keep their place. Where blocks overlap, the budget is shared."""

    by: Literal["leaf", "source"] = "leaf"
    phases: Annotated[list[Phase], Field(min_length=1, max_length=50)]

    @model_validator(mode="after")
    def _once(self) -> Self:
        names: list[Name] = [name for phase in self.phases for name in phase.names]
        if len(set(names)) != len(names):
            raise ValueError("a group is named in two phases")
        return self


def apply(pool: Pool, params: Params, ctx: ActionContext) -> Pool:
    """Return the pool with the groups' positions inside their blocks.

    Raises:
        ActionError: None of the groups has rows.
    """
    labels = pool.sources if params.by == "source" else [leaf or "(none)" for leaf in pool.leaves]
    block = {name: phase for phase in params.phases for name in phase.names}
    if not block.keys() & set(labels):
        raise ActionError(
            f"no row of {', '.join(sorted(block))[:200]}",
            where="phases",
            hint=f"has: {', '.join(sorted(set(labels)))}",
        )
    keys, jitter = pool.order_keys.copy(), pool.order_jitter.copy()
    for index, label in enumerate(labels):
        if (phase := block.get(label)) is not None:
            keys[index], jitter[index] = (phase.start + phase.end) / 2, phase.end - phase.start
            ctx.because(pool.ids[index], f"phase {phase.start:g}-{phase.end:g}")
    return pool.with_order(keys, jitter)
