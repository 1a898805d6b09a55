"""What an analyst hands in: one executable proposal, or an abstention with a reason (I11).

Both are closed pydantic models: a field too many, an action outside the catalogue or a parameter out of
range is refused with the offending text named. Nothing in a proposal is ever executed as code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from autosft import actions
from autosft.errors import ActionError, ProposalError
from autosft.identity import fingerprint
from autosft.types import ActionCall

MAX_ACTIONS = 3


class ProposedAction(BaseModel):
    """One action of the catalogue with its parameters."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    kind: str
    params: dict[str, Any] = Field(default_factory=dict)

    @property
    def call(self) -> ActionCall:
        """The action as it will stand in the recipe."""
        return ActionCall(self.kind, self.params)


class Proposal(BaseModel):
    """A recipe change with a predicted effect."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    analyst: Annotated[str, Field(max_length=40)]
    claim: Annotated[str, Field(min_length=1, max_length=600)]
    actions: Annotated[list[ProposedAction], Field(min_length=1, max_length=MAX_ACTIONS)]
    predicted: dict[str, Annotated[float, Field(ge=-1, le=1)]]
    evidence: list[str] = Field(default_factory=list, max_length=20)

    @property
    def calls(self) -> tuple[ActionCall, ...]:
        """The actions as they will stand in the recipe."""
        return tuple(action.call for action in self.actions)

    @property
    def canonical(self) -> str:
        """Fingerprint of what would be done, whatever it is called or claimed."""
        return fingerprint([[a.kind, a.params] for a in self.actions])


class Abstention(BaseModel):
    """No proposal this round, and why."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    analyst: Annotated[str, Field(max_length=40)]
    reason: Annotated[str, Field(min_length=1, max_length=600)]


def parse_reply(
    data: dict[str, Any], requests: Mapping[str, type[BaseModel]] | None = None
) -> Proposal | Abstention:
    """Check an analyst's reply against the schema and the catalogue.

    Args:
        data: The reply.
        requests: Kinds beside the catalogue that are fulfilled before they are tried (see `menu`), with their
            parameters; None for none.

    Returns:
        A proposal whose parameters are completed with the actions' defaults, or an abstention.

    Raises:
        ProposalError: Malformed; the message names the field and the offending text.
    """
    try:
        if "reason" in data:
            return Abstention.model_validate(data)
        proposal = Proposal.model_validate(data)
        checked = [
            ProposedAction(kind=call.kind, params=dict(call.params))
            for call in (_checked(call, requests or {}) for call in proposal.calls)
        ]
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ProposalError(
            f"{first['msg']}: {str(first.get('input'))[:120]!r}", where=f"proposal.{where}"
        ) from None
    except ActionError as error:
        raise ProposalError(str(error), where="proposal.actions") from None
    return proposal.model_copy(update={"actions": checked})


def _checked(call: ActionCall, requests: Mapping[str, type[BaseModel]]) -> ActionCall:
    if call.kind in requests:
        return ActionCall(call.kind, requests[call.kind].model_validate(dict(call.params)).model_dump())
    return actions.check_call(call)
