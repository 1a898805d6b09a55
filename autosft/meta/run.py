"""Start, continue or re-open a campaign: one command for all three."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from autosft.artifacts import is_leftover
from autosft.config import Config, check_settings, config_from_json
from autosft.errors import CampaignError, ConfigError, SpendCapError
from autosft.memory import CampaignLock
from autosft.meta.campaign import CAMPAIGN, CONFIG, Campaign, open_campaign
from autosft.meta.graph import run_graph
from autosft.meta.holdout import refuse_if_scored
from autosft.meta.nodes import Nodes
from autosft.meta.tracker import Tracker
from autosft.types import Event

_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM)
_DISK_HINT = "make room or permit writing there, then run the same command again; finished steps are kept"
# Files that may lie in a folder before a campaign starts in it.
HARMLESS = {".lock", "artifacts", "cache", "logs", CONFIG, "holdout.json", "journal.jsonl", "quarantine"}


def run_campaign(
    config: Config, out: Path | None = None, on_event: Callable[[Event], None] | None = None
) -> dict[str, Any]:
    """Run a campaign to its end, from wherever its folder says it stands.

    Args:
        config: The configuration; for a folder that holds a campaign it must match what is frozen there.
        out: Campaign folder; `campaign.out` or `runs/<campaign.name>` if None.
        on_event: Receives progress for people.

    Returns:
        `stop` (why it ended), `incumbent` and `claimed_best` (round numbers), `folder`.

    Raises:
        ConfigError: A setting is unusable; nothing is written.
        CampaignError: The folder cannot be used.
        CampaignLockedError: Another process works on it.
        GuardError: An invariant would be broken.
        ExecutorError: Round 0 could not be measured.
    """
    emit = on_event or (lambda event: None)
    check_settings(config)
    folder = campaign_folder(config, out)
    prepare_folder(folder)
    with disk_errors(folder), CampaignLock(folder):
        campaign = open_campaign(
            config, folder, lambda line: emit(Event("note", f"reading the pool: {line}"))
        )
        tracker = Tracker(folder, config.tracking)

        def tell(event: Event) -> None:
            emit(event)
            if event.kind == "round_start":  # the round before it is settled now
                tracker.poke()

        nodes = Nodes(campaign, tell)
        refuse_if_scored(campaign.journal, str(nodes.stop_reason(nodes.next_round() - 1) or ""))
        facts = campaign.facts
        emit(
            Event(
                "campaign_start",
                f"campaign {facts.name} in {folder}: {facts.pool_rows:,} rows, "
                f"{facts.budget_tokens:,} training tokens and {facts.optimizer_steps} steps a run, "
                f"{len(campaign.seeds)} seeds a round, {len(campaign.leaves)} leaves",
                data={"rounds": nodes.last_round, "seeds": list(campaign.seeds), "next": nodes.next_round()},
            )
        )
        try:
            state = run_graph(nodes, folder, nodes.last_round)
            stop = str(state.get("stop") or nodes.stop_reason(nodes.next_round() - 1))
        except SpendCapError as error:
            stop = f"spend cap: {error}"
        done = _finish(campaign, nodes, stop, emit)
        if (left := tracker.close()) is not None:
            emit(Event("note", left))
        return done


@contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Turn what a full or read-only disk raises into an error that says so.

    Raises:
        CampaignError: Something could not be written; what was finished before is kept.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _DISK_ERRORS:
            raise
        where = str(error.filename or folder)
        raise CampaignError(f"cannot be written ({error.strerror})", where=where, hint=_DISK_HINT) from None
    except sqlite3.OperationalError as error:
        raise CampaignError(f"cannot be written ({error})", where=str(folder), hint=_DISK_HINT) from None


def resume_campaign(out: Path, on_event: Callable[[Event], None] | None = None) -> dict[str, Any]:
    """Continue the campaign in a folder with the configuration stored in it.

    Raises:
        CampaignError: There is no campaign, or its configuration is unreadable.
    """
    path = out / CONFIG
    if not (out / CAMPAIGN).exists():
        raise CampaignError("no campaign here", where=str(out), hint="start one with `autosft run --out DIR`")
    try:
        config = config_from_json(orjson.loads(path.read_bytes()))
    except (OSError, ValueError, ConfigError) as error:
        raise CampaignError(
            f"its stored configuration cannot be read ({error})",
            where=str(path),
            hint="use `autosft run` with the settings it was started with",
        ) from None
    return run_campaign(config, out, on_event)


def campaign_folder(config: Config, out: Path | None) -> Path:
    """Return where a campaign lies: `out`, `campaign.out`, or `runs/<campaign.name>`."""
    chosen = out or (
        Path(config.campaign.out) if config.campaign.out else Path("runs") / config.campaign.name
    )
    return chosen.expanduser().absolute()


def prepare_folder(folder: Path) -> None:
    """Create the campaign's folder, or refuse one that cannot hold a campaign.

    Raises:
        CampaignError: Not a folder, not writable, or full of other things.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CampaignError(
            f"cannot be created ({error.strerror})", where=str(folder), hint="choose another --out"
        ) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise CampaignError("cannot be written to", where=str(folder), hint="choose another --out")
    others = sorted(p.name for p in folder.iterdir() if p.name not in HARMLESS and not is_leftover(p))
    if others and CAMPAIGN not in others:
        raise CampaignError(
            f"holds other files ({', '.join(others[:3])}) and no campaign",
            where=str(folder),
            hint="choose an empty or new folder with --out",
        )


def _finish(campaign: Campaign, nodes: Nodes, stop: str, emit: Callable[[Event], None]) -> dict[str, Any]:
    history = nodes.history()
    best = history.incumbent
    facts = {
        "stop": stop,
        "rounds": len(history.rounds),
        "incumbent": best.round if best else None,
        "claimed_best": history.claimed_best,
    }
    # What an operator invalidates changes who is best without another round; that is another ending.
    key = f"{len(history.rounds)} rounds, best {facts['incumbent']}, claimed {facts['claimed_best']}: {stop}"
    campaign.journal.append("campaign.stopped", key, facts)
    emit(Event("campaign_done", f"stopped: {stop}", data=facts))
    return {**facts, "folder": str(campaign.folder)}
