"""Recorded exchanges with language models: artifacts of kind `exchange`, keyed by the request's fingerprint.

`data` holds request and outcome, `measured` what the call took and cost. The context meter and the share of
calls by purpose are read from them; nothing is counted twice, because nothing is sent twice.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from autosft.artifacts import Artifact, ArtifactStore
from autosft.errors import ArtifactError
from autosft.llm import KINDS, PURPOSES, Reply, Request, ToolSpec, Turn

KIND = "exchange"


class Transcripts:
    """The exchanges of a campaign.

    Args:
        store: The campaign's artifacts.
        source: Artifacts of a recorded campaign whose exchanges answer requests too; they are copied over.
    """

    def __init__(self, store: ArtifactStore, source: ArtifactStore | None = None) -> None:
        self._store, self._source = store, source
        self._lock = threading.Lock()

    def find(self, key: str) -> Mapping[str, Any] | None:
        """Return the outcome of an equal request, or None."""
        found = self._store.find(KIND, key)
        if found is None and self._source is not None:
            try:
                recorded = self._source.load(KIND, key)
            except ArtifactError:
                return None
            self._write(key, recorded.data, recorded.measured)
            found = recorded
        return None if found is None else dict(found.data["outcome"])

    def keep(
        self, key: str, request: Request, outcome: Mapping[str, Any], measured: Mapping[str, Any]
    ) -> None:
        """Store an exchange."""
        self._write(key, {"request": request.to_json(), "outcome": dict(outcome)}, measured)

    def _write(self, key: str, data: Mapping[str, Any], measured: Mapping[str, Any]) -> None:
        with self._lock, self._store.create(KIND, key) as step:
            step.data, step.measured = dict(data), dict(measured)


def read_exchanges(campaign: Path) -> Iterator[Artifact]:
    """Return a campaign's exchanges by round, role and size of conversation; damaged ones left out."""
    store = ArtifactStore(campaign / "artifacts")
    found = []
    for folder in (store.root / KIND).glob("*"):
        try:
            found.append(store.load(KIND, folder.name))
        except ArtifactError:
            continue
    return iter(sorted(found, key=_place))


def _place(exchange: Artifact) -> tuple[int, str, int, str]:
    request = exchange.data["request"]
    return request["round"], request["role"], len(request["turns"]), exchange.fingerprint


def read_request(data: Mapping[str, Any]) -> Request:
    """Read a stored request back."""
    return Request(
        data["role"],
        data["round"],
        data["purpose"],
        data["model"],
        data["system"],
        tuple(Turn.from_json(turn) for turn in data["turns"]),
        tuple(ToolSpec(t["name"], t["description"], t["schema"]) for t in data["tools"]),
        data["max_output_tokens"],
    )


def purpose_of(exchange: Mapping[str, Any]) -> str:
    """Return what a call was for: reading where it led to a tool call, else what was asked for."""
    outcome, request = exchange["outcome"], exchange["request"]
    calls = outcome["reply"]["calls"] if "reply" in outcome else ()
    reads = any(call["name"] != "answer" for call in calls)
    return "reading" if reads and request["purpose"] != "execution" else str(request["purpose"])


def context_meter(campaign: Path, window_tokens: int | None = None) -> list[dict[str, Any]]:
    """Return a row a role and round: tokens by kind of context, window fill, compactions, cached share.

    Args:
        campaign: Campaign folder.
        window_tokens: Context window that `fill` is a share of; None leaves it out.

    Returns:
        Rows with `round`, `role`, `calls`, `failed`, tokens of each kind (`KINDS`), `input_tokens`,
        `output_tokens`, `cached_frac`, `largest` (tokens of the largest request), `fill`, `compactions`.
    """
    rows: dict[tuple[int, str], dict[str, Any]] = {}
    for exchange in read_exchanges(campaign):
        request = read_request(exchange.data["request"])
        zero: dict[str, Any] = dict.fromkeys(
            ("calls", "failed", *KINDS, "input_tokens", "output_tokens", "cached", "largest", "compactions"),
            0,
        )
        row = rows.setdefault((request.round, request.role), zero)
        outcome = exchange.data["outcome"]
        usage = Reply.from_json(outcome["reply"]).usage if "reply" in outcome else None
        sent = request.likely_input_tokens
        if usage is not None:
            sent = usage.input_tokens + usage.cached_tokens + usage.cache_write_tokens
            row["output_tokens"] += usage.output_tokens
            row["cached"] += usage.cached_tokens
        row["calls"] += 1
        row["failed"] += "error" in outcome
        row["input_tokens"] += sent
        row["largest"] = max(row["largest"], sent)
        row["compactions"] += _compacts(request)
        sizes = request.bytes_by_kind()
        total = max(1, sum(sizes.values()))
        for kind, size in sizes.items():
            row[kind] += round(sent * size / total)
    table = []
    for (number, role), row in sorted(rows.items()):
        cached = row.pop("cached")
        row["cached_frac"] = cached / row["input_tokens"] if row["input_tokens"] else 0.0
        row["fill"] = None if window_tokens is None else row["largest"] / window_tokens
        table.append({"round": number, "role": role, **row})
    return table


def _compacts(request: Request) -> bool:
    last = request.turns[-1] if request.turns else None
    return last is not None and last.role == "user" and last.text.startswith(COMPACTION)


#: How a request begins that asks a role to sum up its own context.
COMPACTION = "Your context is nearly full."


def call_shares(campaign: Path) -> dict[str, dict[str, Any]]:
    """Return purpose -> calls, their share of all calls, and roles that made them."""
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for exchange in read_exchanges(campaign):
        counts[purpose_of(exchange.data)][exchange.data["request"]["role"]] += 1
    total = sum(n for roles in counts.values() for n in roles.values())
    return {
        purpose: {
            "calls": sum(counts[purpose].values()),
            "share": sum(counts[purpose].values()) / total if total else 0.0,
            "roles": dict(sorted(counts[purpose].items())),
        }
        for purpose in PURPOSES
    }
