"""Spend: every cost is reserved before it is caused and settled after it (I9).

Kinds: `device_s` (seconds of one device or worker), `usd`, `llm_tokens`. The ledger is its own append-only
file: what something cost is measured, so it is no part of the journal's hash chain. A reservation without a
settlement (a killed process) counts as spent in full.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from autosft.errors import SpendCapError

LEDGER = "spend.jsonl"


class Spend:
    """A campaign's ledger and caps.

    Args:
        folder: Campaign folder.
        caps: Kind -> most that may ever be spent; kinds without a cap are metered only.
        wall_cap_s: Most seconds since the campaign's first entry; None for no cap.
    """

    def __init__(self, folder: Path, caps: Mapping[str, float], wall_cap_s: float | None = None) -> None:
        self._path = folder / LEDGER
        self._caps = dict(caps)
        self._wall_cap_s = wall_cap_s
        self._lock = threading.Lock()
        self._open: dict[str, tuple[str, float]] = {}
        self._first_time: float | None = None
        self.spent: dict[str, float] = {}
        for line in read_ledger(folder):
            self._first_time = self._first_time or line["time"]
            if line["event"] == "reserved":
                self._open[line["key"]] = (line["kind"], line["amount"])
                self.spent[line["kind"]] = self.spent.get(line["kind"], 0.0) + line["amount"]
            elif line["key"] in self._open:
                kind, reserved = self._open.pop(line["key"])
                self.spent[kind] += line["amount"] - reserved

    def reserve(self, key: str, kind: str, amount: float, *, where: str) -> str:
        """Set an amount aside; return the reservation's key for `settle`.

        Raises:
            SpendCapError: The cap would be exceeded; nothing is reserved.
        """
        with self._lock:
            setting = "device_hours" if kind == "device_s" else kind
            cap, spent = self._caps.get(kind), self.spent.get(kind, 0.0)
            if cap is not None and spent + amount > cap:
                raise SpendCapError(
                    f"{kind} cap {cap:g} would be exceeded: {spent:g} spent, {amount:g} more needed",
                    where=where,
                    hint=f"raise spend.{setting} and run the same command again",
                )
            if self._wall_cap_s is not None and self._first_time is not None:
                used = time.time() - self._first_time
                if used > self._wall_cap_s:
                    raise SpendCapError(
                        f"wall time cap {self._wall_cap_s:g} s is used up ({used:.0f} s)",
                        where=where,
                        hint="raise spend.wall_s and run the same command again",
                    )
            unique = f"{key}@{time.time_ns()}"
            self._append("reserved", unique, kind, amount)
            self._open[unique] = (kind, amount)
            self.spent[kind] = spent + amount
            return unique

    def settle(self, key: str, amount: float) -> None:
        """Replace a reservation by what was really spent."""
        with self._lock:
            kind, reserved = self._open.pop(key)
            self._append("settled", key, kind, amount)
            self.spent[kind] += amount - reserved

    def _append(self, event: str, key: str, kind: str, amount: float) -> None:
        now = time.time()
        self._first_time = self._first_time or now
        line = {"time": now, "event": event, "key": key, "kind": kind, "amount": amount}
        with self._path.open("ab") as stream:
            stream.write(orjson.dumps(line) + b"\n")
            stream.flush()
            os.fsync(stream.fileno())


def read_ledger(folder: Path) -> list[dict[str, Any]]:
    """Return the ledger's whole lines (a line torn by a crash is left out)."""
    path = folder / LEDGER
    if not path.exists():
        return []
    lines = []
    for line in path.read_bytes().split(b"\n"):
        try:
            lines.append(orjson.loads(line))
        except orjson.JSONDecodeError:
            continue
    return lines
