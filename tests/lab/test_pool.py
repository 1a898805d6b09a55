"""The pool: what is planted is there, what is not listed is sound, and the seed moves all of it."""

from __future__ import annotations

import functools

import pytest

from autosft.errors import PoolError
from autosft.evals.suites import load_suite
from autosft.lab.defects import ABSENTABLE, REPAIRABLE, SCARCE, draw_plan
from autosft.lab.phrasing import LEAVES
from autosft.lab.pool import MAX_ROWS, Manifest, make_pool
from autosft.lab.world import KIND_OF, KINDS
from autosft.pool import Pool
from autosft.taxonomy import verify
from autosft.types import Row

SEEDS = (0, 1, 2, 3)


@functools.cache
def lab(seed: int) -> tuple[Pool, Manifest]:
    return make_pool(seed=seed)


def verdicts(row: Row) -> dict[str, bool]:
    return {r.id: verify(r, row.prompt, row.response) for r in row.requirements}


def form_holds(row: Row) -> bool:
    return all(passed for name, passed in verdicts(row).items() if name != "lab:fact")


def test_equal_arguments_give_equal_pools() -> None:
    pool, manifest = make_pool(rows=500, seed=5)
    again, same = make_pool(rows=500, seed=5)
    assert len(pool) == 500
    assert pool.fingerprint == again.fingerprint
    assert pool.table.equals(again.table)
    assert manifest.defects == same.defects
    assert make_pool(rows=500, seed=6)[0].fingerprint != pool.fingerprint


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_without_a_defect_are_sound(seed: int) -> None:
    pool, manifest = lab(seed)
    assert len(pool) == 3000
    for row in pool.rows():
        if row.id not in manifest.defects:
            assert all(verdicts(row).values()), (row.prompt, row.response)


@pytest.mark.parametrize("seed", SEEDS)
def test_each_defect_is_what_it_says(seed: int) -> None:
    pool, manifest = lab(seed)
    for row in pool.rows():
        names = manifest.defects.get(row.id, ())
        if "corrupted" in names or "violating" in names:
            assert not form_holds(row)
        if "wrong_fact" in names:
            assert not verdicts(row)["lab:fact"]
            assert KIND_OF[row.requirements[-1].kwargs["entity"]] in manifest.plan.wrong_kinds
        if {"off_topic", "truncated"} & set(names):
            assert not all(verdicts(row).values())
        mended = manifest.mended.get(row.id)
        if mended is not None:
            assert all(verdicts(mended).values()), (mended.prompt, mended.response)
            assert mended.prompt == row.prompt and mended.source == row.source
    counts = manifest.counts()
    assert min(counts.values()) >= 12
    assert set(counts) == {
        "violating",
        "off_topic",
        "truncated",
        "duplicate",
        "corrupted",
        "wrong_fact",
        "leak",
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_pruning_empties_corrupted_leaves_and_absent_leaves_have_no_row(seed: int) -> None:
    pool, manifest = lab(seed)
    ordinary = pool.leaves.count(next(iter(manifest.plan.corrupted)))
    for leaf in LEAVES:
        rows = [
            row for row in pool.rows() if row.leaf == leaf and "leak" not in manifest.defects.get(row.id, ())
        ]
        if leaf in manifest.plan.corrupted:
            assert rows and not any(form_holds(row) for row in rows)
        if leaf in manifest.plan.absent:
            assert not rows
        if leaf in manifest.plan.scarce:
            assert 0 < len(rows) < 0.3 * ordinary


@pytest.mark.parametrize("seed", SEEDS)
def test_all_rows_on_the_wrong_kind_are_wrong(seed: int) -> None:
    pool, manifest = lab(seed)
    for row in pool.rows():
        if KIND_OF[row.requirements[-1].kwargs["entity"]] in manifest.plan.wrong_kinds and row.leaf is None:
            listed = manifest.defects.get(row.id, ())
            assert "wrong_fact" in listed or "leak" in listed or "duplicate" in listed


@pytest.mark.parametrize("seed", SEEDS)
def test_leaks_are_dev_prompts_and_nothing_else_is(seed: int) -> None:
    pool, manifest = lab(seed)
    dev = set(load_suite("lab", seed=seed).reference_texts())
    held = set(load_suite("lab", seed=seed, split="held_out").reference_texts())
    leaks = [row for row in pool.rows() if "leak" in manifest.defects.get(row.id, ())]
    assert {row.id for row in leaks} == {row.id for row in pool.rows() if row.prompt in dev}
    lengths = [len(row.prompt.split()) for row in leaks]
    assert sum(n < 13 for n in lengths) >= 5 and sum(n >= 13 for n in lengths) >= 5
    assert not held & {row.prompt for row in pool.rows()}


def test_leaks_follow_the_suite_seed() -> None:
    pool, _ = make_pool(rows=600, seed=1, suite_seed=9)
    assert set(load_suite("lab", seed=9).reference_texts()) & {row.prompt for row in pool.rows()}
    assert not set(load_suite("lab", seed=1).reference_texts()) & {row.prompt for row in pool.rows()}


def test_no_training_row_shares_thirteen_words_with_evaluation() -> None:
    def grams(text: str) -> set[tuple[str, ...]]:
        words = text.lower().split()
        return {tuple(words[i : i + 13]) for i in range(len(words) - 12)}

    pool, manifest = lab(0)
    dev = set[tuple[str, ...]]().union(*(grams(t) for t in load_suite("lab").reference_texts()))
    assert dev
    for row in pool.rows():
        if "leak" not in manifest.defects.get(row.id, ()):
            assert not grams(row.prompt) & dev


def test_seeds_move_every_defect() -> None:
    plans = [draw_plan(seed) for seed in range(24)]
    assert len({plan.corrupted for plan in plans}) > 3
    assert len({plan.absent for plan in plans}) > 3
    assert len({plan.scarce for plan in plans}) > 3
    assert {kind for plan in plans for kind in plan.wrong_kinds} == set(KINDS)
    assert len({plan.sources[-1][0] for plan in plans}) > 2
    assert len({tuple(sorted(n for n, share in plan.spoilt.items() if share > 0.4)) for plan in plans}) > 8
    for plan in plans:
        assert set(plan.corrupted) <= set(REPAIRABLE)
        assert set(plan.absent) <= set(ABSENTABLE)
        assert set(plan.scarce) <= set(SCARCE)
        assert len({*plan.corrupted, *plan.absent, *plan.scarce}) == 6


def test_no_source_names_a_defect_and_none_is_pure() -> None:
    pool, manifest = lab(0)
    by_source: dict[str, set[bool]] = {}
    for row in pool.rows():
        by_source.setdefault(row.source, set()).add(row.id in manifest.defects)
    assert len(by_source) >= 5
    assert all(kinds == {True, False} for kinds in by_source.values())
    for name in by_source:
        assert not any(word in name for word in ("bad", "good", "wrong", "clean", "dirty", "leak", "dup"))


def test_the_file_is_sorted_by_source_and_the_worst_stands_last() -> None:
    pool, manifest = lab(0)
    changes = sum(a != b for a, b in zip(pool.sources, pool.sources[1:], strict=False))
    assert changes == len(set(pool.sources)) - 1
    assert pool.sources[-1] == manifest.plan.sources[-1][0]


def test_large_pools_stay_distinct() -> None:
    pool, manifest = make_pool(rows=20_000, seed=2)
    prompts: dict[tuple[str, str], int] = {}
    for row in pool.rows():
        key = (row.prompt, row.response)
        prompts[key] = prompts.get(key, 0) + 1
    planted = manifest.counts()["duplicate"]
    copies = sum(n - 1 for n in prompts.values())
    assert copies < planted * 1.5


@pytest.mark.parametrize("rows", [0, -3, 99, MAX_ROWS + 1])
def test_unusable_sizes_are_refused(rows: int) -> None:
    with pytest.raises(PoolError, match=r"lab\.rows"):
        make_pool(rows=rows)
