"""What an action did, counted from the pools before and after it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from autosft.actions.context import ActionContext
from autosft.pool import Pool
from autosft.types import ActionDiff, Family

MAX_SAMPLES = 5
MAX_REASONS = 20


def diff_pools(before: Pool, after: Pool, kind: str, ctx: ActionContext) -> ActionDiff:
    """Compare two pools.

    The family is that of the effect. Rows changed by an edit are repair, by another response resupervise;
    rows gone are prune, new conversations synthesize, copies of present ones mix. Where the rows stay, other
    weights are mix and other places order. Of several effects, the one on most rows names the family.

    Args:
        before: The pool the action was given.
        after: The pool it returned.
        kind: The action's kind.
        ctx: Context the action ran in; supplies token counts and reasons.
    """
    was_of = _places(after, before)
    stays = was_of >= 0
    left = np.ones(len(before), dtype=bool)
    left[was_of[stays]] = False
    gone_at, made_at = np.flatnonzero(left), np.flatnonzero(~stays)
    gone, made = _ids(before, gone_at), _ids(after, made_at)
    heirs = _heirs(after, made_at, made, set(gone))
    heirless = set(gone) - set(heirs.values())
    removed = [row_id for row_id in gone if row_id in heirless]
    added_at = [i for i, row_id in zip(made_at.tolist(), made, strict=True) if row_id not in heirs]
    added = _ids(after, np.array(added_at, dtype=np.int64))
    reweighted, moved = _stayed(before, after, was_of)
    method = after.table.column("method")
    edited = sum(
        method[i].as_py() == "edit"
        for i, row_id in zip(made_at.tolist(), made, strict=True)
        if row_id in heirs
    )
    copies = int(np.isin(after.keys[added_at], before.keys).sum()) if added_at else 0
    by_rows: dict[Family, int] = {
        "repair": edited,
        "resupervise": len(heirs) - edited,
        "synthesize": len(added) - copies,
        "prune": len(removed),
    }
    reasons = Counter(ctx.reasons.get(row_id, kind) for row_id in (*removed, *heirs.values(), *added))
    samples: list[tuple[str | None, str | None]] = [
        *((parent, row_id) for row_id, parent in list(heirs.items())[:MAX_SAMPLES]),
        *((row_id, None) for row_id in removed[:MAX_SAMPLES]),
        *((None, row_id) for row_id in added[:MAX_SAMPLES]),
    ]
    return ActionDiff(
        kind=kind,
        family=_family(by_rows, copies + reweighted, moved),
        rows_added=len(added),
        rows_removed=len(removed),
        rows_changed=len(heirs),
        rows_reweighted=reweighted,
        rows_moved=moved,
        tokens_delta=_tokens(after, made_at, ctx) - _tokens(before, gone_at, ctx),
        reasons=dict(reasons.most_common(MAX_REASONS)) | {k: n for k, n in ctx.tally.items() if n},
        samples=tuple((was, now, ctx.reasons.get(was or now or "", kind)) for was, now in samples),
    )


def _places(rows: Pool, among: Pool) -> NDArray[np.int64]:
    """Return the place of each row's id among another pool's; -1 where that has no such id."""
    found = pc.index_in(rows.table.column("id"), value_set=among.table.column("id"))
    return np.array(pc.fill_null(found, -1).to_numpy(), dtype=np.int64)


def _ids(pool: Pool, places: NDArray[np.int64]) -> list[str]:
    return list(pool.table.column("id").take(pa.array(places)).to_pylist()) if len(places) else []


def _heirs(after: Pool, made_at: NDArray[np.int64], made: list[str], gone: set[str]) -> dict[str, str]:
    """Made row -> the row it stands for now: its parent, where that went; the first of several made rows."""
    heirs: dict[str, str] = {}
    taken: set[str] = set()
    parents = after.table.column("parent").take(pa.array(made_at)).to_pylist() if made else []
    for row_id, parent in zip(made, parents, strict=True):
        if parent in gone and parent not in taken:
            heirs[row_id] = parent
            taken.add(parent)
    return heirs


def _family(by_rows: dict[Family, int], reweighted: int, moved: int) -> Family | None:
    most = max(by_rows, key=lambda name: by_rows[name])
    if by_rows[most]:
        return most
    return "mix" if reweighted else "order" if moved else None


def _stayed(before: Pool, after: Pool, was_of: NDArray[np.int64]) -> tuple[int, int]:
    """Count surviving rows with another weight, and with another place."""
    now = np.flatnonzero(was_of >= 0)
    now = now[np.argsort(was_of[now], kind="stable")]
    was = was_of[now]
    reweighted = int((before.weights[was] != after.weights[now]).sum())
    keys_was, keys_now = before.order_keys[was], after.order_keys[now]
    same_key = (keys_was == keys_now) | (np.isnan(keys_was) & np.isnan(keys_now))
    moved = ~same_key | (before.order_jitter[was] != after.order_jitter[now])
    if (np.diff(now) < 0).any():
        # The rows themselves were permuted, which `file` order trains on.
        moved |= np.argsort(now, kind="stable") != np.arange(len(now))
    return reweighted, int(moved.sum())


def _tokens(pool: Pool, places: NDArray[np.int64], ctx: ActionContext) -> int:
    # Counting a whole pool looks its rows up; taking some out first would copy their texts.
    return int(ctx.tokens(pool)[places].sum()) if len(places) else 0
