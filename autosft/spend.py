"""Spend: every cost is reserved before it is caused and settled after it (I9).

Kinds: `device_s` (seconds of one device or worker), `usd`, `llm_tokens`. The ledger is its own append-only
file: what something cost is measured, so it is no part of the journal's hash chain. A reservation without a
settlement (a killed process, a call whose fate is unknown) counts as spent in full.

A reservation may name scopes such as `round:3` and `role:review`; each scope has caps of its own.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from autosft.errors import ScopeCapError, SpendCapError

LEDGER = "spend.jsonl"


class Spend:
    """A campaign's ledger and caps.

    Args:
        folder: Campaign folder.
        caps: Kind -> most that may ever be spent; kinds without a cap are metered only.
        wall_cap_s: Most seconds since the campaign's first entry; None for no cap.
        scope_caps: Scope type (`round`, `role`) -> kind -> most that one scope of the type may spend.
        device_hour_usd: Price of a device-hour; device time then counts towards `usd` as well.
    """

    def __init__(
        self,
        folder: Path,
        caps: Mapping[str, float],
        wall_cap_s: float | None = None,
        *,
        scope_caps: Mapping[str, Mapping[str, float]] | None = None,
        device_hour_usd: float | None = None,
    ) -> None:
        self._path = folder / LEDGER
        self._caps = dict(caps)
        self._scope_caps = {scope: dict(found) for scope, found in (scope_caps or {}).items()}
        self._device_s_usd = None if device_hour_usd is None else device_hour_usd / 3600
        self._wall_cap_s = wall_cap_s
        self._lock = threading.Lock()
        self._open: dict[str, tuple[str, float, tuple[str, ...]]] = {}
        self._partners: dict[str, str] = {}
        self._serial = 0
        self._first_time: float | None = None
        self.spent: dict[str, float] = {}
        self.scoped: dict[tuple[str, str], float] = {}
        for line in read_ledger(folder):
            self._first_time = self._first_time or line["time"]
            scopes = tuple(line.get("scopes", ()))
            if line["event"] == "reserved":
                self._open[line["key"]] = (line["kind"], line["amount"], scopes)
                self._add(line["kind"], line["amount"], scopes)
            elif line["key"] in self._open:
                kind, reserved, scopes = self._open.pop(line["key"])
                self._add(kind, line["amount"] - reserved, scopes)

    def reserve(self, key: str, kind: str, amount: float, *, where: str, scopes: Sequence[str] = ()) -> str:
        """Set an amount aside; return the reservation's key for `settle`.

        Raises:
            SpendCapError: The cap would be exceeded; nothing is reserved.
        """
        amounts = {kind: amount}
        if kind == "device_s" and self._device_s_usd is not None:
            amounts["usd"] = amount * self._device_s_usd
        keys = self.reserve_all(key, amounts, where=where, scopes=scopes)
        if "usd" in keys and kind != "usd":
            self._partners[keys[kind]] = keys["usd"]
        return keys[kind]

    def reserve_all(
        self, key: str, amounts: Mapping[str, float], *, where: str, scopes: Sequence[str] = ()
    ) -> dict[str, str]:
        """Set several kinds aside, all or none; return kind -> key for `settle`.

        Raises:
            SpendCapError: A cap of the campaign would be exceeded, or its wall time is used up.
            ScopeCapError: A cap of one of the scopes would be exceeded.
        """
        with self._lock:
            self._check_wall(where)
            for kind, amount in amounts.items():
                self._check(kind, amount, where, scopes)
            keys = {}
            for kind, amount in amounts.items():
                self._serial += 1
                keys[kind] = f"{key}/{kind}@{time.time_ns()}.{self._serial}"
                self._append("reserved", keys[kind], kind, amount, scopes)
                self._open[keys[kind]] = (kind, amount, tuple(scopes))
                self._add(kind, amount, scopes)
            return keys

    def settle(self, key: str, amount: float) -> None:
        """Replace a reservation by what was really spent."""
        with self._lock:
            self._settle(key, amount)
            partner = self._partners.pop(key, None)
            if partner is not None and self._device_s_usd is not None:
                self._settle(partner, amount * self._device_s_usd)

    def _settle(self, key: str, amount: float) -> None:
        kind, reserved, scopes = self._open.pop(key)
        self._append("settled", key, kind, amount, scopes)
        self._add(kind, amount - reserved, scopes)

    def _add(self, kind: str, amount: float, scopes: Sequence[str]) -> None:
        self.spent[kind] = self.spent.get(kind, 0.0) + amount
        for scope in scopes:
            self.scoped[scope, kind] = self.scoped.get((scope, kind), 0.0) + amount

    def _check(self, kind: str, amount: float, where: str, scopes: Sequence[str]) -> None:
        setting = "device_hours" if kind == "device_s" else kind
        cap, spent = self._caps.get(kind), self.spent.get(kind, 0.0)
        if cap is not None and spent + amount > cap:
            raise SpendCapError(
                f"{kind} cap {cap:g} would be exceeded: {spent:g} spent, {amount:g} more needed",
                where=where,
                hint=f"raise spend.{setting} and run the same command again",
            )
        for scope in scopes:
            scope_type = scope.split(":", 1)[0]
            cap, spent = self._scope_caps.get(scope_type, {}).get(kind), self.scoped.get((scope, kind), 0.0)
            if cap is not None and spent + amount > cap:
                raise ScopeCapError(
                    f"{kind} cap {cap:g} of {scope.replace(':', ' ')} would be exceeded: {spent:g} spent, "
                    f"{amount:g} more needed",
                    where=where,
                    hint=f"raise spend.{scope_type}_{setting}",
                )

    def _check_wall(self, where: str) -> None:
        if self._wall_cap_s is not None and self._first_time is not None:
            used = time.time() - self._first_time
            if used > self._wall_cap_s:
                raise SpendCapError(
                    f"wall time cap {self._wall_cap_s:g} s is used up ({used:.0f} s)",
                    where=where,
                    hint="raise spend.wall_s and run the same command again",
                )

    def _append(self, event: str, key: str, kind: str, amount: float, scopes: Sequence[str]) -> None:
        now = time.time()
        self._first_time = self._first_time or now
        line: dict[str, Any] = {"time": now, "event": event, "key": key, "kind": kind, "amount": amount}
        if scopes:
            line["scopes"] = list(scopes)
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


def spend_by_scope(folder: Path) -> dict[str, dict[str, float]]:
    """Return where a campaign's spend went: scope (`round:3`, `role:review`, `model:NAME`) -> kind -> amount.

    Reservations that were never settled count in full.
    """
    amounts: dict[str, tuple[str, float, tuple[str, ...]]] = {}
    for line in read_ledger(folder):
        amounts[line["key"]] = (line["kind"], line["amount"], tuple(line.get("scopes", ())))
    table: dict[str, dict[str, float]] = {}
    for kind, amount, scopes in amounts.values():
        for scope in scopes:
            row = table.setdefault(scope, {})
            row[kind] = row.get(kind, 0.0) + amount
    return dict(sorted(table.items()))
