"""Requests become rows: written, answered anew, or computed, each through its gates, then frozen.

Gates for new rows, in order: verifier, review by another role, near-duplicates, decontamination. Rows
that fail are kept beside the others with the gate that stopped them, for people to look at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from autosft.actions import ActionContext, BenchmarkIndex, scan
from autosft.actions.made import FILE, KIND
from autosft.artifacts import ArtifactStore
from autosft.engine.near import near_duplicates
from autosft.errors import ActionError
from autosft.identity import fingerprint
from autosft.pool import Pool
from autosft.subagents.office import Office
from autosft.taxonomy import Taxonomy
from autosft.types import ActionCall, Row

REJECTED = "rejected.jsonl"
#: Word-trigram overlap with another row that bars a new one.
NEAR = 0.9


@dataclass(frozen=True)
class Workshop:
    """What fulfilling a request works with.

    Attributes:
        office: Asks roles.
        round: Round the rows are made for.
        pool: The parent's pool.
        ctx: Verdicts and artifacts.
        taxonomy: The newest tree of leaves.
        benchmarks: Evaluation texts, as digests, that no row may hold (I5).
        store: Keeps what was made.
        checkpoint: A checkpoint of the parent round, or None.
    """

    office: Office
    round: int
    pool: Pool
    ctx: ActionContext
    taxonomy: Taxonomy
    benchmarks: tuple[BenchmarkIndex, ...]
    store: ArtifactStore
    checkpoint: Path | None


@dataclass
class Batch:
    """Rows on their way through the gates.

    Attributes:
        kept: Rows that passed every gate so far.
        receipts: Row id -> gate -> what it said.
        rejected: Plain data of rows that were stopped, with gate and reason.
        counts: Gate -> rows that passed it.
    """

    kept: list[Row] = field(default_factory=list)
    receipts: dict[str, dict[str, str]] = field(default_factory=dict)
    rejected: list[dict[str, Any]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def passed(self, row: Row, gate: str, why: str = "passed") -> None:
        """Note that a row passed a gate."""
        self.receipts.setdefault(row.id, {})[gate] = why

    def stop(self, row: Row, gate: str, why: str) -> None:
        """Note that a gate stopped a row."""
        self.rejected.append(
            {
                "gate": gate,
                "why": why,
                "parent": row.parent,
                "leaf": row.leaf,
                "messages": [{"role": m.role, "content": m.content} for m in row.messages],
            }
        )


def verified(rows: Sequence[Row], batch: Batch, ctx: ActionContext) -> list[Row]:
    """Pass the rows whose requirements all hold."""
    found = []
    for row in rows:
        broken = [name for name, passed in ctx.passes(row).items() if not passed]
        if row.requirements and not broken:
            batch.passed(row, "verifier")
            found.append(row)
        else:
            batch.stop(row, "verifier", f"breaks {', '.join(broken)}" if broken else "has no requirement")
    batch.counts["verifier"] = batch.counts.get("verifier", 0) + len(found)
    return found


def distinct(rows: Sequence[Row], batch: Batch, pool: Pool) -> list[Row]:
    """Pass the rows that are unlike the pool's, those kept already and one another."""
    before = [*pool.rows(), *batch.kept]
    texts = ["\n".join(m.content for m in row.messages) for row in (*before, *rows)]
    earlier = near_duplicates(texts, NEAR)[len(before) :].tolist()
    found = []
    for row, other in zip(rows, earlier, strict=True):
        if other < 0:
            batch.passed(row, "near-duplicate")
            found.append(row)
        else:
            batch.stop(row, "near-duplicate", f"like row {(*before, *rows)[other].id}")
    batch.counts["near-duplicate"] = batch.counts.get("near-duplicate", 0) + len(found)
    return found


def clean(rows: Sequence[Row], batch: Batch, benchmarks: Sequence[BenchmarkIndex]) -> list[Row]:
    """Pass the rows that hold no evaluation text; which suite was hit is not said (I6)."""
    if not rows:
        return []
    hits = scan(Pool.from_rows(list(rows)), list(benchmarks))
    found = []
    for index, row in enumerate(rows):
        if any(bool(hit[index]) for hit in hits.values()):
            batch.stop(row, "decontamination", "holds evaluation text")
        else:
            batch.passed(row, "decontamination")
            found.append(row)
    batch.counts["decontamination"] = batch.counts.get("decontamination", 0) + len(found)
    return found


def freeze(shop: Workshop, request: ActionCall, batch: Batch, kind: str) -> ActionCall:
    """Store what was made; return the action that puts it into a recipe.

    Raises:
        ActionError: Nothing passed.
    """
    if not batch.kept:
        counts = ", ".join(f"{gate}: {n}" for gate, n in batch.counts.items()) or "nothing was made"
        raise ActionError(f"{request.kind} made no usable row ({counts})", where=f"round {shop.round}")
    lines = [
        {
            "parent": row.parent,
            "messages": [{"role": m.role, "content": m.content} for m in row.messages],
            "requirements": [{"id": r.id, "kwargs": dict(r.kwargs)} for r in row.requirements],
            "leaf": row.leaf,
            "receipts": batch.receipts.get(row.id, {}),
        }
        for row in batch.kept
    ]
    key = fingerprint([KIND, kind, lines])
    if shop.store.find(KIND, key) is None:
        with shop.store.create(
            KIND, key, {"request": {"kind": request.kind, "params": dict(request.params)}}
        ) as step:
            (step.path / FILE).write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
            rejected = b"".join(orjson.dumps(line) + b"\n" for line in batch.rejected)
            (step.path / REJECTED).write_bytes(rejected)
            step.data = {
                "kind": request.kind,
                "round": shop.round,
                "rows": len(lines),
                "rejected": len(batch.rejected),
                "yield": batch.counts,
            }
    return ActionCall(kind, {"artifact": key})
