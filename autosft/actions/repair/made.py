"""Edit responses as a program did, from its frozen output."""

from __future__ import annotations

from typing import Any

from autosft.actions.context import ActionContext
from autosft.actions.made import read_made, replaced
from autosft.actions.params import ActionParams, Name
from autosft.pool import Pool

EXAMPLE: dict[str, Any] = {"artifact": "0123456789abcdef01234567"}
KIND = "repair/made"
PROPOSED = False


class Params(ActionParams):
    """The artifact that holds the responses."""

    artifact: Name


def apply(pool: Pool, params: Params, ctx: ActionContext) -> Pool:
    """Return the pool with the responses that pass all requirements of their rows.

    Raises:
        ActionError: There is no such artifact.
    """
    return replaced(pool, read_made(ctx, params.artifact), KIND, "edit", ctx, "edited by a program")
