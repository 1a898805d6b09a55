"""Damaged records: found when a campaign opens, moved to quarantine, and computed anew.

A record that the journal rests on takes the journal's later lines with it: they are set aside and written
again as the campaign passes over the same steps. What was not damaged is found by its fingerprint, so
only the damaged step is done twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from autosft.artifacts import ArtifactStore
from autosft.errors import ArtifactError, CampaignError, CorruptRecordError
from autosft.memory import Entry, Journal

# Entries that a person wrote; computing anew would not bring them back.
_BY_OPERATOR = ("round.invalidated", "parent.chosen")
_STAGES = {"train": "train", "outputs": "generate", "scores": "score"}
NOTES = "notes.txt"
Damaged = dict[tuple[str, str], str]


def mend_records(store: ArtifactStore, journal: Journal) -> list[str]:
    """Quarantine every damaged record and set the journal back to before the first step that needs one.

    Args:
        store: The campaign's artifacts. Records and the presence of their files are checked; contents of
            files are hashed where they are used.
        journal: The campaign's journal; its lock is held.

    Returns:
        One line a damaged record.

    Raises:
        CampaignError: An operator's entry would be lost; nothing was changed in the journal.
    """
    entries = list(journal)
    damaged = _damaged(store) | _absent(store, entries)
    if not damaged:
        return []
    first = min((_start(e, entries) for e in entries if _rests_on(e, store, damaged)), default=None)
    if first is not None:
        lost = [e for e in entries[first:] if e.kind in _BY_OPERATOR]
        if lost:
            raise CampaignError(
                f"{next(iter(damaged.values()))}; computing it anew would undo {lost[0].kind} {lost[0].key}",
                where=str(store.root.parent),
                hint="restore the record from a backup, or start a new campaign",
            )
        _set_runs_aside(store, damaged)
    for kind, key in damaged:
        if store.folder(kind, key).exists():
            store.quarantine(kind, key)
    if first is not None:
        journal.roll_back(first)
    # Not into the journal: a line there would give the same campaign another chain from here on.
    (store.root / "quarantine").mkdir(parents=True, exist_ok=True)
    with (store.root / "quarantine" / NOTES).open("a", encoding="utf-8") as stream:
        stream.writelines(f"{what}\n" for what in damaged.values())
    return list(damaged.values())


def _damaged(store: ArtifactStore) -> Damaged:
    found: Damaged = {}
    for folder in sorted(store.root.glob("*/*")):
        if folder.parent.name in ("staging", "quarantine", "logs") or not folder.is_dir():
            continue
        try:
            store.load(folder.parent.name, folder.name)
        except CorruptRecordError as error:
            found[folder.parent.name, folder.name] = f"{folder.parent.name}/{folder.name}: {error.what}"
        except ArtifactError:
            found[folder.parent.name, folder.name] = (
                f"{folder.parent.name}/{folder.name}: its record is missing"
            )
    return found


def _absent(store: ArtifactStore, entries: Iterable[Entry]) -> Damaged:
    """Return the records of decisions and rounds that the journal names and nobody has."""
    named = {"decision.taken": ("decision", "decision"), "round.recorded": ("round", "record")}
    wanted = [(named[e.kind][0], str(e.data[named[e.kind][1]])) for e in entries if e.kind in named]
    return {pair: f"{'/'.join(pair)}: it is missing" for pair in wanted if not store.folder(*pair).exists()}


def _rests_on(entry: Entry, store: ArtifactStore, damaged: Damaged) -> bool:
    if entry.kind == "decision.taken":
        return ("decision", str(entry.data["decision"])) in damaged
    if entry.kind == "claim.decided":
        return any(_uses(receipt, damaged) for receipt in entry.data.get("fresh", ()))
    if entry.kind != "round.recorded":
        return False
    record = str(entry.data["record"])
    if ("round", record) in damaged or ("build", str(entry.data["build"])) in damaged:
        return True
    try:
        receipts = store.load("round", record).data["seeds"]
    except ArtifactError:
        return True
    return any(_uses(receipt, damaged) for receipt in receipts)


def _uses(receipt: Mapping[str, Any], damaged: Damaged) -> bool:
    return any((kind, str(receipt[name])) in damaged for name, kind in _STAGES.items())


def _start(entry: Entry, entries: Iterable[Entry]) -> int:
    """Return the number of the line from which a step is done again: a round's first, or a claim's own."""
    if entry.kind == "claim.decided":
        return entry.seq
    number = entry.key.split(".", 1)[0]
    kinds = ("decision.taken", "hypothesis.registered")
    return min(e.seq for e in entries if e.kind in kinds and e.key.split(".", 1)[0] == number)


def _set_runs_aside(store: ArtifactStore, damaged: Damaged) -> None:
    """Quarantine what would hide a missing stage: the receipts and the score that were made from it."""
    for folder in sorted(store.root.glob("run/*")):
        if ("run", folder.name) in damaged:
            continue
        receipts = store.load("run", folder.name).data["receipts"]
        hit = [receipt for receipt in receipts if _uses(receipt, damaged)]
        for receipt in hit:
            score = str(receipt["scores"])
            if store.folder("score", score).exists() and ("score", score) not in damaged:
                store.quarantine("score", score)
        if hit:
            store.quarantine("run", folder.name)
