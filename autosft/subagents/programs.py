"""Program actions: a small function a model wrote, run over rows in the sandbox, its output frozen.

The function runs as code of answers does: a process group of its own, no network, limits on time, memory and
files. It is tried on a sample first. What it returns is plain data and passes the same gates as any made row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from autosft.errors import ActionError
from autosft.llm import shown
from autosft.pool import made_row, new_row
from autosft.pool.rows import clean_text
from autosft.subagents.rows import spread
from autosft.subagents.workshop import Batch, Workshop, clean, distinct, freeze, verified
from autosft.taxonomy.sandbox import Call, Limits, Reply, answer_calls, isolation
from autosft.types import ActionCall, Requirement, Row

LIMITS = Limits(cpu_s=20, wall_s=90.0, memory_bytes=2 << 30, reply_bytes=32 << 20)
SAMPLE_ROWS = 40
#: Share of calls on the sample that may fail.
MOST_FAILING = 0.2
MOST_CHARS = 20_000


def prune(request: ActionCall, shop: Workshop) -> ActionCall:
    """Run `keep(row)` over the rows; return the action that drops those it does not keep.

    Raises:
        ActionError: The program fails on the sample, or drops nothing or everything.
    """
    rows = _rows(request, shop)
    replies = _run(request, "keep", [(_plain(row),) for row in rows])
    gone = [row.id for row, reply in zip(rows, replies, strict=True) if reply.ok and reply.value is False]
    if not gone or len(gone) == len(shop.pool):
        raise ActionError(f"the program drops {len(gone)} of {len(shop.pool)} rows", where=request.kind)
    return ActionCall("prune/rows", {"ids": gone[:10_000]})


def repair(request: ActionCall, shop: Workshop) -> ActionCall:
    """Run `repair(row)` over the rows; return the action that edits those whose new response passes.

    Raises:
        ActionError: The program fails on the sample, or no edit passes.
    """
    rows = [row for row in _rows(request, shop) if row.requirements and row.response]
    replies = _run(request, "repair", [(_plain(row),) for row in rows])
    batch, made = Batch(), []
    for row, reply in zip(rows, replies, strict=True):
        text = reply.value if reply.ok else None
        if isinstance(text, str) and text.strip() and clean_text(text) != row.response:
            text = clean_text(text[:MOST_CHARS])
            made.append(made_row(row, response=text, made_by="repair/made", method="edit", verdicts={}))
    batch.counts["edited"] = len(made)
    batch.kept = clean(verified(made, batch, shop.ctx), batch, shop.benchmarks)
    return freeze(shop, request, batch, "repair/made")


def synthesize(request: ActionCall, shop: Workshop) -> ActionCall:
    """Run `write(i)`; return the action that adds the rows that get through every gate.

    Raises:
        ActionError: No such leaf, the program fails on the sample, or nothing passes.
    """
    leaf = request.params["leaf"]
    if leaf not in shop.taxonomy:
        raise ActionError(f"no leaf {str(leaf)[:60]!r}", where="params.leaf")
    spec = shop.taxonomy.leaf(leaf)
    requirement = Requirement(spec.verifier, dict(spec.params))
    replies = _run(request, "write", [(i,) for i in range(int(request.params["rows"]))])
    made: list[Row] = []
    for reply in replies:
        found = reply.value if reply.ok else None
        texts = [found.get("prompt"), found.get("response")] if isinstance(found, Mapping) else [None]
        if all(isinstance(text, str) and text.strip() for text in texts):
            turns = [("user", str(texts[0])[:MOST_CHARS]), ("assistant", str(texts[1])[:MOST_CHARS])]
            kind = "synthesize/made"
            made.append(new_row("synthetic", turns, requirements=[requirement], leaf=leaf, made_by=kind))
    batch = Batch()
    batch.counts["written"] = len(made)
    rows = distinct(verified(made, batch, shop.ctx), batch, shop.pool)
    batch.kept = clean(rows, batch, shop.benchmarks)
    return freeze(shop, request, batch, "synthesize/made")


def _rows(request: ActionCall, shop: Workshop) -> list[Row]:
    leaves = request.params["leaves"]
    rows = [row for row in shop.pool.rows() if leaves is None or row.leaf in leaves]
    if not rows:
        raise ActionError("no row of these leaves", where=request.kind)
    return rows


def _run(request: ActionCall, name: str, arguments: Sequence[tuple[Any, ...]]) -> list[Reply]:
    """Try the program on a sample, then run it on everything.

    Raises:
        ActionError: This machine cannot confine it, or too many calls on the sample fail.
    """
    if "network" not in isolation() and "seccomp" not in isolation():
        raise ActionError(
            "programs cannot be confined on this machine", where="llm.programs", hint="switch them off"
        )
    code = str(request.params["code"])
    trial = [arguments[i] for i in spread(range(len(arguments)), SAMPLE_ROWS)]
    tried = answer_calls(code, [Call(name, args) for args in trial], LIMITS)
    failed = [reply for reply in tried if not reply.ok]
    if len(failed) > MOST_FAILING * len(tried):
        raise ActionError(
            f"the program fails on {len(failed)} of {len(tried)} rows: {shown(failed[0].detail, 200)}",
            where=request.kind,
        )
    return answer_calls(code, [Call(name, args) for args in arguments], LIMITS)


def _plain(row: Row) -> dict[str, Any]:
    return {"prompt": row.prompt, "response": row.response, "source": row.source, "leaf": row.leaf or ""}


FULFIL: Mapping[str, Callable[[ActionCall, Workshop], ActionCall]] = {
    "prune/program": prune,
    "repair/program": repair,
    "synthesize/program": synthesize,
}
