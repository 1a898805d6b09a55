"""Mending by the manifest removes exactly the defects of the families asked for."""

from __future__ import annotations

import functools
from collections import Counter

import pytest

from autosft.errors import ActionError
from autosft.lab.oracle import PRUNED, mend
from autosft.lab.pool import Manifest, make_pool
from autosft.pool import Pool
from autosft.taxonomy import verify
from autosft.types import FAMILIES, Row


@functools.cache
def lab() -> tuple[Pool, Manifest]:
    return make_pool(rows=1200, seed=1)


def holds(row: Row, *, content: bool) -> bool:
    return all(
        verify(r, row.prompt, row.response) for r in row.requirements if (r.id == "lab:fact") == content
    )


def test_nothing_asked_nothing_changed() -> None:
    pool, manifest = lab()
    assert mend(pool, manifest, ()).fingerprint == pool.fingerprint


def test_all_families_leave_a_sound_pool() -> None:
    pool, manifest = lab()
    mended = mend(pool, manifest)
    assert all(holds(row, content=True) and holds(row, content=False) for row in mended.rows())
    assert {leaf for leaf in mended.leaves if leaf} > set(manifest.plan.absent)
    changes = sum(a != b for a, b in zip(mended.sources, mended.sources[1:], strict=False))
    assert changes > 0.5 * len(mended)


def test_order_of_families_does_not_matter() -> None:
    pool, manifest = lab()
    assert mend(pool, manifest, FAMILIES[::-1]).fingerprint == mend(pool, manifest).fingerprint


def test_each_family_touches_its_own_defect() -> None:
    pool, manifest = lab()
    bad = {row_id for row_id, names in manifest.defects.items() if PRUNED & set(names)}
    assert set(mend(pool, manifest, ("prune",)).ids) == set(pool.ids) - bad
    repaired = mend(pool, manifest, ("repair",))
    assert all(holds(r, content=False) for r in repaired.rows() if r.leaf in manifest.plan.corrupted)
    assert Counter(holds(r, content=True) for r in repaired.rows()) == Counter(
        holds(r, content=True) for r in pool.rows()
    )
    right = mend(pool, manifest, ("resupervise",))
    assert (
        sum(holds(r, content=True) for r in right.rows())
        > sum(holds(r, content=True) for r in pool.rows()) + 80
    )
    assert [holds(r, content=False) for r in right.rows()] == [holds(r, content=False) for r in pool.rows()]
    written = mend(pool, manifest, ("synthesize",))
    assert set(pool.ids) < set(written.ids)
    assert all(written.leaves.count(leaf) > 30 for leaf in manifest.plan.absent)
    mixed = mend(pool, manifest, ("mix",))
    assert mixed.ids == pool.ids
    assert {
        w for w, leaf in zip(mixed.weights, mixed.leaves, strict=True) if leaf in manifest.plan.scarce
    } == {5.0}
    ordered = mend(pool, manifest, ("order",))
    assert ordered.ids != pool.ids and sorted(ordered.ids) == sorted(pool.ids)


def test_misuse_is_named() -> None:
    pool, manifest = lab()
    with pytest.raises(ActionError, match="polish"):
        mend(pool, manifest, ("polish",))  # type: ignore[arg-type]
    with pytest.raises(ActionError, match="manifest"):
        mend(make_pool(rows=300, seed=2)[0], manifest)
