"""What differs between two rounds: their recipes, and the rows they trained on, with samples to look at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from autosft.actions import Build, load_build
from autosft.artifacts import ArtifactStore
from autosft.errors import CampaignError
from autosft.meta.history import History, RoundFacts
from autosft.meta.views_memory import open_history
from autosft.pool import Pool
from autosft.types import ActionCall, Row


def diff(out: Path, a: int, b: int, *, samples: int = 5) -> dict[str, Any]:
    """Compare round `b` with round `a`.

    A row of `b` is *changed* where it was made from a row of `a` that is gone (or the other way round, or
    both from one row), or where a gone row of `a` has the same prompt; the rest is added or removed.

    Args:
        out: Campaign folder.
        a: The round to compare with.
        b: The round to describe.
        samples: Most rows shown of each kind of change.

    Returns:
        `recipe` (actions shared, dropped and added, in order), `rows` (counts), `tokens`, `token_share` and
        `leaf_share` (label -> a, b, delta), `samples` (changed, removed, added: texts and reasons), `scores`.

    Raises:
        CampaignError: A round is not recorded or was never built.
    """
    _, history = open_history(out)
    store = ArtifactStore(out / "artifacts")
    first, second = (_built(history, number, out) for number in (a, b))
    builds = tuple(load_build(store.load("build", facts.build)) for facts in (first, second))
    changed, removed, added, kept = _match(builds[0].pool, builds[1].pool)
    reasons = _reasons([*first.data["diffs"], *second.data["diffs"]])
    return {
        "a": a,
        "b": b,
        "scores": {"a": first.score, "b": second.score},
        "recipe": _recipe_diff(first, second),
        "rows": {
            "a": len(builds[0].pool),
            "b": len(builds[1].pool),
            "added": len(added),
            "removed": len(removed),
            "changed": len(changed),
            **_kept_counts(builds[0].pool, builds[1].pool, kept),
        },
        "tokens": {
            "unique_a": first.data.get("unique_tokens"),
            "unique_b": second.data.get("unique_tokens"),
            "trained_a": first.data["train_tokens"],
            "trained_b": second.data["train_tokens"],
            "passes_a": first.data["passes"],
            "passes_b": second.data["passes"],
        },
        "token_share": _shares(first.data.get("token_share", {}), second.data.get("token_share", {})),
        "leaf_share": _shares(first.data.get("leaf_share", {}), second.data.get("leaf_share", {})),
        "samples": _samples(builds, changed, removed, added, reasons, samples),
    }


def _built(history: History, number: int, out: Path) -> RoundFacts:
    able = {facts.round: facts for facts in history.rounds if facts.build}
    if number not in able:
        known = ", ".join(map(str, able)) or "none"
        raise CampaignError(
            f"round {number} has no training set", where=str(out), hint=f"rounds with one: {known}"
        )
    return able[number]


def _recipe_diff(first: RoundFacts, second: RoundFacts) -> dict[str, Any]:
    old, new = first.recipe.actions, second.recipe.actions
    shared = 0
    while shared < min(len(old), len(new)) and old[shared] == new[shared]:
        shared += 1
    return {
        "shared": [_call(c) for c in old[:shared]],
        "dropped": [_call(c) for c in old[shared:]],
        "added": [_call(c) for c in new[shared:]],
        "a": first.recipe.fingerprint,
        "b": second.recipe.fingerprint,
    }


def _call(call: ActionCall) -> dict[str, Any]:
    return {"kind": call.kind, "params": {k: v for k, v in call.params.items() if v is not None}}


def _match(old: Pool, new: Pool) -> tuple[list[tuple[int, int]], list[int], list[int], list[tuple[int, int]]]:
    """Return (changed pairs, removed, added, kept pairs) as row indices of the two pools."""
    at = {row_id: i for i, row_id in enumerate(old.ids)}
    kept = [(at[row_id], j) for j, row_id in enumerate(new.ids) if row_id in at]
    stays = {i for i, _ in kept}, {j for _, j in kept}
    gone = [i for i in range(len(old)) if i not in stays[0]]
    made = [j for j in range(len(new)) if j not in stays[1]]
    pairs: dict[int, int] = {}
    taken: set[int] = set()
    for before, after in _keys(old, new, gone, made):
        waiting: dict[str, list[int]] = {}
        for i, key in before:
            if key and i not in taken:
                waiting.setdefault(key, []).append(i)
        for j, key in after:
            if j not in pairs and key and waiting.get(key):
                pairs[j] = waiting[key].pop(0)
                taken.add(pairs[j])
    changed = [(i, j) for j, i in sorted(pairs.items())]
    return changed, [i for i in gone if i not in taken], [j for j in made if j not in pairs], kept


def _keys(
    old: Pool, new: Pool, gone: list[int], made: list[int]
) -> Iterable[tuple[list[tuple[int, str | None]], list[tuple[int, str | None]]]]:
    """Yield what two rows may share to be one row changed, strongest link first."""
    ids_old, ids_new, from_old, from_new = old.ids, new.ids, old.parents, new.parents
    yield [(i, ids_old[i]) for i in gone], [(j, from_new[j]) for j in made]
    yield [(i, from_old[i]) for i in gone], [(j, ids_new[j]) for j in made]
    yield [(i, from_old[i]) for i in gone], [(j, from_new[j]) for j in made]
    # An edit of an edit names a row that neither pool holds; its prompt is what is left to know it by.
    prompts_old = zip(gone, (row.prompt for row in old.take(gone).rows()), strict=True) if gone else ()
    prompts_new = zip(made, (row.prompt for row in new.take(made).rows()), strict=True) if made else ()
    yield list(prompts_old), list(prompts_new)


def _kept_counts(old: Pool, new: Pool, kept: list[tuple[int, int]]) -> dict[str, int]:
    was, now = (np.array([pair[k] for pair in kept], dtype=np.int64) for k in (0, 1))
    keys_was, keys_now = old.order_keys[was], new.order_keys[now]
    same_key = (keys_was == keys_now) | (np.isnan(keys_was) & np.isnan(keys_now))
    return {
        "kept": len(kept),
        "reweighted": int((old.weights[was] != new.weights[now]).sum()),
        "moved": int((~same_key | (old.order_jitter[was] != new.order_jitter[now])).sum()),
    }


def _shares(a: Mapping[str, float], b: Mapping[str, float]) -> list[dict[str, Any]]:
    pairs = {label: (a.get(label, 0.0), b.get(label, 0.0)) for label in {*a, *b}}
    ranked = sorted(pairs.items(), key=lambda item: (-max(item[1]), item[0]))
    return [{"label": label, "a": was, "b": now, "delta": now - was} for label, (was, now) in ranked]


def _reasons(diffs: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for entry in diffs:
        for before, after, reason in entry["samples"]:
            for row_id in (before, after):
                if row_id:
                    found[row_id] = f"{entry['kind']}: {reason}"
    return found


def _samples(
    builds: tuple[Build, ...],
    changed: list[tuple[int, int]],
    removed: list[int],
    added: list[int],
    reasons: Mapping[str, str],
    limit: int,
) -> dict[str, list[dict[str, Any]]]:
    old, new = builds[0].pool, builds[1].pool

    def known_first(indices: list[int], pool: Pool) -> list[int]:
        # Rows whose reason the diffs kept tell more; after them the pool's own order.
        return sorted(indices, key=lambda i: (pool.ids[i] not in reasons, i))[:limit]

    pairs = sorted(changed, key=lambda p: (new.ids[p[1]] not in reasons, p[1]))[:limit]
    return {
        "changed": [
            {**_pair(old.row(i), new.row(j)), "reason": reasons.get(new.ids[j]) or new.row(j).made_by}
            for i, j in pairs
        ],
        "removed": [
            {**_text(old.row(i)), "reason": reasons.get(old.ids[i])} for i in known_first(removed, old)
        ],
        "added": [
            {**_text(new.row(j)), "reason": reasons.get(new.ids[j]) or new.row(j).made_by}
            for j in known_first(added, new)
        ],
    }


def _text(row: Row) -> dict[str, Any]:
    return {
        "id": row.id,
        "source": row.source,
        "leaf": row.leaf,
        "prompt": row.prompt,
        "response": row.response,
    }


def _pair(old: Row, new: Row) -> dict[str, Any]:
    return {
        "source": new.source,
        "leaf": new.leaf,
        "id_a": old.id,
        "id_b": new.id,
        "prompt_a": old.prompt,
        "prompt_b": new.prompt,
        "response_a": old.response,
        "response_b": new.response,
        "method": new.method,
        "verdicts": dict(new.verdicts),
    }
