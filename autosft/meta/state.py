"""The graph's state: ids and numbers only, so that a saved cursor stays small and can be thrown away."""

from __future__ import annotations

from typing import Annotated, TypedDict


def gather(known: list[str], new: list[str] | None) -> list[str]:
    """Reducer of the analysts' fan-in: None starts a new round, ids are added, sorted so that order never
    matters."""
    return [] if new is None else sorted({*known, *new})


class State(TypedDict, total=False):
    """One round in progress.

    Attributes:
        round: Round number; 0 is the untouched pool.
        replies: Artifact ids of the analysts' replies.
        decision: Artifact id of the decision; '' in round 0.
        recipe: Fingerprint of the round's recipe.
        build: Fingerprint of the build; '' where the guards refused it.
        status: `ok`, or why the round was abandoned.
        stop: Why the campaign ends; '' while it goes on.
    """

    round: int
    replies: Annotated[list[str], gather]
    decision: str
    recipe: str
    build: str
    status: str
    stop: str
