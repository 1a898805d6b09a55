"""Pools: ids, immutability, columns, fingerprints, hostile rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autosft.errors import EmptyPoolError, PoolError
from autosft.pool import Pool, as_data, content_id, made_row, new_row
from autosft.types import Message, Requirement


def row(text: str, source: str = "a", **more):
    return new_row(source, [("user", text), ("assistant", f"re {text}")], **more)


@pytest.fixture
def pool() -> Pool:
    return Pool.from_rows([row("x"), row("y", "b", leaf="l"), row("x"), row("x", "c")])


def test_ids_are_content_hashes_and_copies_are_numbered(pool):
    first = content_id([Message("user", "x"), Message("assistant", "re x")])
    assert pool.ids == [first, row("y").id, f"{first}.2", f"{first}.3"]


def test_ids_stay_when_rows_around_them_go_and_come(pool):
    part = pool.keep([False, True, True, False])
    assert part.ids == pool.ids[1:3]
    back = part.append([row("x"), row("x")])
    assert back.ids == [*pool.ids[1:3], pool.ids[0], f"{pool.ids[0]}.3"]
    assert Pool.from_rows(pool.rows()).ids == pool.ids


texts = st.text(max_size=40)
rows = st.builds(
    lambda t, r, s, leaf: new_row(
        s or "s",
        [("user", t), ("assistant", r)],
        requirements=[Requirement("a:b", {"k": t, "n": 3})],
        leaf=leaf,
    ),
    texts,
    texts,
    texts.map(lambda s: s.encode("utf-8", "replace").decode()),
    st.none() | st.just("leaf"),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(rows, max_size=8))
def test_rows_come_back_as_they_went_in(given_rows):
    pool = Pool.from_rows(given_rows)
    assert [r.messages for r in pool.rows()] == [r.messages for r in given_rows]
    assert [r.requirements for r in pool.rows()] == [r.requirements for r in given_rows]
    assert len(set(pool.ids)) == len(given_rows)
    assert [pool.row(i) for i in range(len(pool))] == list(pool.rows())
    assert Pool(pool.table).fingerprint == pool.fingerprint


def test_every_change_gives_another_pool_and_leaves_the_first(pool):
    before = pool.fingerprint, pool.rows()
    changed = [
        pool.keep([True, False, True, True]),
        pool.with_weights([1, 2, 1, 1]),
        pool.with_order([0.1, np.nan, 0.3, 1], 0.05),
        pool.with_order([0.1, np.nan, 0.3, 1], 0.06),
        pool.append([row("z")]),
        pool.replace([1], [row("q")]),
        pool.take([3, 2, 1, 0]),
    ]
    prints = [p.fingerprint for p in changed]
    assert len({*prints, pool.fingerprint}) == len(changed) + 1
    assert (
        (pool.fingerprint, pool.rows()) == before == (Pool(pool.table).fingerprint, Pool(pool.table).rows())
    )
    with pytest.raises(ValueError):
        pool.weights[0] = 3


def test_columns_and_rows_agree_after_changes(pool):
    for touch in (False, True):  # with and without the row objects built before
        start = Pool(pool.table)
        if touch:
            start.rows()
        made = made_row(pool.row(1), response="new", made_by="a/b", method="edit", verdicts={"v": True})
        last = (
            start.with_order([0.5] * 4, 0.2).replace([1, 3], [made, row("w")]).keep([True, True, False, True])
        )
        assert [r.id for r in last.rows()] == last.ids == Pool(last.table).ids
        assert last.rows() == Pool(last.table).rows()
        assert last.row(1).response == "new" and last.row(1).parent == pool.ids[1]
        assert last.row(1).source == "b" and last.row(1).leaf == "l"
        assert last.order_jitter.tolist() == [0.2, 0.2, 0.2]


def test_made_rows_need_one_of_response_and_messages(pool):
    with pytest.raises(PoolError, match="either"):
        made_row(pool.row(0), made_by="a/b", method="edit", verdicts={})
    with pytest.raises(PoolError, match="no assistant turn"):
        made_row(new_row("s", [("user", "x")]), response="y", made_by="a/b", method="edit", verdicts={})


@pytest.mark.parametrize("turns", [[], [("assitant", "x")], [("user", 3)]])
def test_unusable_turns_are_refused(turns):
    with pytest.raises(PoolError):
        new_row("s", turns)


def test_bad_masks_weights_and_keys_are_refused(pool):
    with pytest.raises(EmptyPoolError):
        pool.keep([False] * 4)
    for call in (
        lambda: pool.keep([True]),
        lambda: pool.with_weights([1, 2, 3]),
        lambda: pool.with_weights([1, 2, np.nan, 1]),
        lambda: pool.with_weights([1, 2, -1, 1]),
        lambda: pool.with_order([0, 0, 0, 1.5]),
        lambda: pool.with_order([0, 0, 0, 1], 2.0),
        lambda: pool.replace([0, 0], [row("a"), row("b")]),
        lambda: pool.take([1, 1]),
        lambda: Pool(pool.table.drop_columns(["leaf"])),
    ):
        with pytest.raises(PoolError):
            call()


def test_a_large_pool_is_quick(benchmark_seconds):
    rows_made = [row(f"text number {i}", f"s{i % 7}") for i in range(50_000)]
    with benchmark_seconds(3.0):
        pool = Pool.from_rows(rows_made)
        kept = pool.keep(np.arange(len(pool)) % 2 == 0).with_weights(np.ones(25_000))
        kept = kept.with_order(np.linspace(0, 1, 25_000), 0.01)
        assert len(kept.fingerprint) == 24


def test_row_data_is_plain_json(pool):
    import json

    assert json.loads(json.dumps(as_data(pool.row(1))))["leaf"] == "l"
