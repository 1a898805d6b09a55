"""What an operator may decide about a campaign: that a round does not count, where the next one starts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from autosft.artifacts import ArtifactStore
from autosft.errors import CampaignError
from autosft.memory import CampaignLock, Journal, read_journal
from autosft.meta.campaign import read_facts
from autosft.meta.history import History

MAX_REASON = 2000


def invalidate(out: Path, number: int, reason: str) -> dict[str, Any]:
    """Mark a round as one that does not count, and with it every round that descends from it.

    Nothing is deleted: the journal gains a line, and the incumbent, the claimed best and every later parent
    are chosen among the rounds that are left.

    Args:
        out: Campaign folder; no process may be working on it.
        number: The round.
        reason: Why, for whoever reads the campaign later.

    Returns:
        `round`, `reason`, `invalidated` (round -> reason, descendants included), `incumbent`, `claimed_best`.

    Raises:
        CampaignError: The round is not recorded, is round 0, or no reason is given.
        CampaignLockedError: The campaign is running.
    """
    reason = " ".join(reason.split())
    if not reason:
        raise CampaignError(
            "a reason is needed", where=f"round {number}", hint='--reason "why it does not count"'
        )
    if len(reason) > MAX_REASON:
        raise CampaignError(f"the reason has {len(reason)} characters, at most {MAX_REASON} are kept")
    with _operating(out) as (journal, history):
        _recorded(history, number, out)
        if number == 0:
            raise CampaignError(
                "round 0 is what every other round is compared with and cannot be invalidated",
                where=str(out),
                hint="start a new campaign with --out",
            )
        known = journal.find("round.invalidated", str(number))
        if known is not None and known.data["reason"] != reason:
            raise CampaignError(
                f"round {number} is invalidated already: {known.data['reason']}", where=str(out)
            )
        journal.append("round.invalidated", str(number), {"reason": reason})
        after = History(journal, ArtifactStore(out / "artifacts"))
        best = after.incumbent
        return {
            "round": number,
            "reason": reason,
            "invalidated": {str(r): why for r, why in sorted(after.invalidated.items())},
            "incumbent": None if best is None else best.round,
            "claimed_best": after.claimed_best,
        }


def revisit(out: Path, number: int) -> dict[str, Any]:
    """Let the next round start from a given round instead of the incumbent.

    Args:
        out: Campaign folder; no process may be working on it.
        number: A measured, valid round.

    Returns:
        `next_round` and its `parent`.

    Raises:
        CampaignError: The round is not recorded, not measured or invalidated; or the next round's parent is
            settled already.
        CampaignLockedError: The campaign is running.
    """
    with _operating(out) as (journal, history):
        facts = _recorded(history, number, out)
        if not facts.measured:
            raise CampaignError(
                f"round {number} was abandoned and has no checkpoint to learn from", where=str(out)
            )
        if number in history.invalidated:
            raise CampaignError(
                f"round {number} does not count: {history.invalidated[number]}",
                where=str(out),
                hint="choose a valid round",
            )
        after = history.next_round
        fork = history.open_fork
        if fork is not None and after in (fork.continuation, fork.rival):
            raise CampaignError(
                f"round {after} belongs to a revision that started from round {fork.parent}",
                where=str(out),
                hint=f"choose again once round {fork.rival} is recorded",
            )
        known = journal.find("parent.chosen", str(after))
        if known is not None and known.data["parent"] != number:
            raise CampaignError(
                f"round {known.data['parent']} was chosen as the parent of round {after} already",
                where=str(out),
            )
        journal.append("parent.chosen", str(after), {"parent": number})
        return {"next_round": after, "parent": number}


@contextmanager
def _operating(out: Path) -> Iterator[tuple[Journal, History]]:
    """Hold the campaign between two rounds; refuse one whose next round is already under way."""
    read_facts(out)
    with CampaignLock(out):
        read_journal(out)  # damage is for the next run to quarantine, not for a line written after it
        journal = Journal(out)
        history = History(journal, ArtifactStore(out / "artifacts"))
        after = history.next_round
        if journal.find("hypothesis.registered", str(after)) is not None:
            raise CampaignError(
                f"round {after} is under way: its hypothesis is registered and cannot be changed",
                where=str(out),
                hint="let it finish with `autosft resume`, stop the campaign after it, then try again",
            )
        yield journal, history


def _recorded(history: History, number: int, out: Path) -> Any:
    if not 0 <= number < len(history.rounds):
        known = f"0 to {len(history.rounds) - 1}" if history.rounds else "none"
        raise CampaignError(
            f"round {number} is not recorded", where=str(out), hint=f"recorded rounds: {known}"
        )
    return history.rounds[number]
