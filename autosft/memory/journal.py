"""The campaign's journal: append-only lines, each chained to the one before by its hash.

An entry is identified by (kind, key). Appending it again with equal data returns the entry that is there,
so a node that runs twice after a crash writes once; with different data it is refused. The chain covers
everything but the wall time, so two equal campaigns have equal chains.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from autosft.artifacts import sync_folder, write_atomic
from autosft.errors import CampaignError, CorruptRecordError
from autosft.identity import fingerprint

JOURNAL = "journal.jsonl"
GENESIS = "0" * 24


@dataclass(frozen=True, slots=True)
class Entry:
    """One line: what happened (`kind`), to what (`key`), with which facts (`data`), after which line
    (`prev`)."""

    seq: int
    time: float
    kind: str
    key: str
    data: Mapping[str, Any]
    prev: str
    sha: str


def _digest(seq: int, kind: str, key: str, data: Mapping[str, Any], prev: str) -> str:
    return fingerprint([seq, kind, key, data, prev])


def _parse(line: bytes, seq: int, prev: str, where: str) -> Entry:
    try:
        raw = orjson.loads(line)
        entry = Entry(raw["seq"], raw["time"], raw["kind"], raw["key"], raw["data"], raw["prev"], raw["sha"])
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptRecordError(f"unreadable journal line ({error})", where=where) from None
    if (entry.seq, entry.prev) != (seq, prev) or entry.sha != _digest(
        seq, entry.kind, entry.key, entry.data, prev
    ):
        raise CorruptRecordError("journal line does not match its hash chain", where=where)
    return entry


def _scan(path: Path) -> tuple[list[Entry], int, CorruptRecordError | None]:
    """Return the intact entries, the byte length they cover, and what is wrong after them, if anything."""
    if not path.exists():
        return [], 0, None
    entries: list[Entry] = []
    prev, good = GENESIS, 0
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            if not line.endswith(b"\n"):
                break  # torn by a crash in mid-write: never happened
            try:
                entry = _parse(line, len(entries), prev, f"{path}:{number}")
            except CorruptRecordError as error:
                return entries, good, error
            entries.append(entry)
            prev, good = entry.sha, good + len(line)
    return entries, good, None


def read_journal(folder: Path) -> list[Entry]:
    """Read a campaign's journal without locking or changing it; a line being written is left out.

    Raises:
        CorruptRecordError: A line does not match the chain; the message names it.
    """
    entries, _, error = _scan(folder / JOURNAL)
    if error is not None:
        error.hint = "running the campaign again quarantines the damaged tail and recomputes it"
        raise error
    return entries


class Journal:
    """The writer's side; hold the campaign's lock while using it."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / JOURNAL
        entries, good, self.damage = _scan(self._path)
        if self._path.exists() and good < self._path.stat().st_size:
            self._set_aside(good, keep_tail=self.damage is not None)
        self._entries = entries
        self._index = {(e.kind, e.key): e for e in entries}

    def _set_aside(self, good: int, *, keep_tail: bool) -> None:
        content = self._path.read_bytes()
        if keep_tail:
            folder = self._path.parent / "quarantine"
            folder.mkdir(exist_ok=True)
            write_atomic(folder / f"journal-{time.time_ns()}.jsonl", content[good:])
        write_atomic(self._path, content[:good])

    def roll_back(self, seq: int) -> None:
        """Set the entries from number `seq` on aside, into `quarantine`, to be written again."""
        if seq >= len(self._entries):
            return
        lines = self._path.read_bytes().splitlines(keepends=True)
        self._set_aside(sum(map(len, lines[:seq])), keep_tail=True)
        self._entries = self._entries[:seq]
        self._index = {(e.kind, e.key): e for e in self._entries}

    def __iter__(self) -> Iterator[Entry]:
        return iter(list(self._entries))

    def find(self, kind: str, key: str) -> Entry | None:
        """Return the entry with this identity, or None."""
        return self._index.get((kind, key))

    def of_kind(self, kind: str) -> list[Entry]:
        """Return the entries of a kind, oldest first."""
        return [e for e in self._entries if e.kind == kind]

    def append(self, kind: str, key: str, data: Mapping[str, Any]) -> Entry:
        """Write an entry durably, or return the equal one that is there.

        Raises:
            CampaignError: An entry with this identity holds different data.
        """
        data = orjson.loads(orjson.dumps(data, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_SORT_KEYS))
        known = self.find(kind, key)
        if known is not None:
            if known.data != data:
                raise CampaignError(
                    f"the journal already holds a different {kind} for {key!r}",
                    where=f"{self._path}:{known.seq + 1}",
                    hint="journal entries are never edited; start a new campaign to change what was decided",
                )
            return known
        seq, prev = len(self._entries), self._entries[-1].sha if self._entries else GENESIS
        entry = Entry(seq, time.time(), kind, key, data, prev, _digest(seq, kind, key, data, prev))
        line = orjson.dumps({name: getattr(entry, name) for name in Entry.__slots__}) + b"\n"
        fresh = not self._path.exists()
        handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            size = os.fstat(handle).st_size
            if os.write(handle, line) != len(line):
                os.ftruncate(handle, size)
                raise CampaignError(
                    "journal line could not be written whole", where=str(self._path), hint="disk full?"
                )
            os.fsync(handle)
        finally:
            os.close(handle)
        if fresh:
            sync_folder(self._path.parent)
        self._entries.append(entry)
        self._index[kind, key] = entry
        return entry
