"""What an action did, counted from the pools before and after it."""

from __future__ import annotations

from collections import Counter

import numpy as np

from autosft.actions.context import ActionContext
from autosft.pool import Pool, base_id
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
    old = {row_id: i for i, row_id in enumerate(before.ids)}
    new = {row_id: i for i, row_id in enumerate(after.ids)}
    gone = [row_id for row_id in before.ids if row_id not in new]
    made = [row_id for row_id in after.ids if row_id not in old]
    heirs = _heirs(after, made, new, set(gone))
    heirless = set(gone) - set(heirs.values())
    removed = [row_id for row_id in gone if row_id in heirless]
    added = [row_id for row_id in made if row_id not in heirs]
    reweighted, moved = _stayed(before, after, old, new)
    methods = after.table.column("method").to_pylist()
    edited = sum(methods[new[row_id]] == "edit" for row_id in heirs)
    contents = {base_id(row_id) for row_id in before.ids}
    copies = sum(base_id(row_id) in contents for row_id in added)
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
        tokens_delta=_tokens(after, made, new, ctx) - _tokens(before, gone, old, ctx),
        reasons=dict(reasons.most_common(MAX_REASONS)) | {k: n for k, n in ctx.tally.items() if n},
        samples=tuple((was, now, ctx.reasons.get(was or now or "", kind)) for was, now in samples),
    )


def _heirs(after: Pool, made: list[str], new: dict[str, int], gone: set[str]) -> dict[str, str]:
    """Made row -> the row it stands for now: its parent, where that went; the first of several made rows."""
    heirs: dict[str, str] = {}
    taken: set[str] = set()
    for row_id in made:
        parent = after.parents[new[row_id]]
        if parent in gone and parent not in taken:
            heirs[row_id] = parent
            taken.add(parent)
    return heirs


def _family(by_rows: dict[Family, int], reweighted: int, moved: int) -> Family | None:
    most = max(by_rows, key=lambda name: by_rows[name])
    if by_rows[most]:
        return most
    return "mix" if reweighted else "order" if moved else None


def _stayed(before: Pool, after: Pool, old: dict[str, int], new: dict[str, int]) -> tuple[int, int]:
    """Count surviving rows with another weight, and with another place."""
    pairs = np.array(
        [(i, new[row_id]) for row_id, i in old.items() if row_id in new], dtype=np.int64
    ).reshape(-1, 2)
    was, now = pairs[:, 0], pairs[:, 1]
    reweighted = int((before.weights[was] != after.weights[now]).sum())
    keys_was, keys_now = before.order_keys[was], after.order_keys[now]
    same_key = (keys_was == keys_now) | (np.isnan(keys_was) & np.isnan(keys_now))
    moved = ~same_key | (before.order_jitter[was] != after.order_jitter[now])
    if (np.diff(now) < 0).any():
        # The rows themselves were permuted, which `file` order trains on.
        moved |= np.argsort(now, kind="stable") != np.arange(len(now))
    return reweighted, int(moved.sum())


def _tokens(pool: Pool, ids: list[str], index: dict[str, int], ctx: ActionContext) -> int:
    return int(ctx.tokens(pool.take([index[row_id] for row_id in ids])).sum()) if ids else 0
