"""Answers of a checkpoint to training rows: drawn once, resumable, used by an action."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from autosft.actions import ActionContext, apply_recipe
from autosft.artifacts import ArtifactStore
from autosft.errors import BaseModelError, ConfigError, PoolError
from autosft.executor import sample
from autosft.executor.sample import sample_rows
from autosft.pool import Pool, RowEncoder, base_id, new_row
from autosft.types import ActionCall, Recipe, Requirement
from tests.executor.worlds import WORDS, write_base

SETTINGS = {"n": 3, "temperature": 1.0, "seed": 4, "max_new_tokens": 6, "sequence_tokens": 64}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return write_base(tmp_path_factory.mktemp("checkpoint"))


@pytest.fixture
def rows():
    return [new_row("s", [("user", word), ("assistant", word.upper())]) for word in WORDS]


@pytest.fixture
def store(tmp_path):
    return ArtifactStore(tmp_path / "store")


def test_every_row_gets_its_samples_and_equal_calls_read_them(checkpoint, rows, store):
    odd = [
        new_row("s", [("assistant", "I speak first.")]),
        new_row("s", [("user", "long " * 80), ("assistant", "x")]),
    ]
    made = sample_rows(checkpoint, [*rows, rows[0], *odd], store=store, **SETTINGS)
    table = pq.read_table(made.file("samples.parquet"))
    ids = [base_id(row.id) for row in rows]
    assert table.column("row").to_pylist() == [row_id for row_id in ids for _ in range(3)]
    assert table.column("sample").to_pylist() == [0, 1, 2] * len(rows)
    assert made.data["rows"] == len(rows) and made.data["left_out"] == 2
    assert made.data["complete"] == table.column("truncated").to_pylist().count(False)
    assert len(set(table.column("text").to_pylist())) > len(rows), "samples differ"
    before = len(store.completions())
    assert sample_rows(checkpoint, [*rows, *odd], store=store, **SETTINGS).fingerprint == made.fingerprint
    assert len(store.completions()) == before
    other = sample_rows(checkpoint, rows, store=store, **{**SETTINGS, "seed": 5})
    assert pq.read_table(other.file("samples.parquet")) != table


def test_a_killed_call_goes_on_with_the_part_it_was_at(checkpoint, rows, store, tmp_path, monkeypatch):
    monkeypatch.setattr(sample, "_PART_ROWS", 5)
    whole = sample_rows(checkpoint, rows, store=ArtifactStore(tmp_path / "whole"), **SETTINGS)
    seen = []

    def stop(event):
        seen.append(event.data["step"])
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sample_rows(checkpoint, rows, store=store, on_event=stop, **SETTINGS)
    assert seen == [5, 10]
    again = sample_rows(checkpoint, rows, store=store, **SETTINGS)
    kinds = [kind for kind, _ in store.completions()]
    assert kinds == ["samples-part"] * 3 + ["samples"], "no part was drawn twice"
    assert again.fingerprint == whole.fingerprint and again.files == whole.files


def test_an_action_takes_the_shortest_answer_that_passes(checkpoint, rows, store):
    need = [Requirement("lab:lowercase")]
    pool = Pool.from_rows(new_row("s", row.messages, requirements=need) for row in rows)
    made = sample_rows(checkpoint, pool.rows(), store=store, **{**SETTINGS, "n": 8, "temperature": 1.5})
    ctx = ActionContext(0, RowEncoder(checkpoint, 64), artifacts=store)
    call = ActionCall("resupervise/checkpoint", {"artifact": made.fingerprint})
    after, [diff] = apply_recipe(Recipe(pool.fingerprint, (call,), 1), pool, ctx)
    answers = ctx.samples(made.fingerprint)
    passing = {
        row.id: min(
            (len(t.strip()) for t in answers[base_id(row.id)] if t.strip() and t == t.lower() != t.upper()),
            default=None,
        )
        for row in pool.rows()
    }
    changed = {row.parent: row for row in after.rows() if row.made_by}
    assert set(changed) == {row_id for row_id, length in passing.items() if length is not None}
    assert all(len(row.response) == passing[parent] for parent, row in changed.items())
    assert diff.rows_changed == len(changed) and diff.reasons["rows sampled"] == len(pool)


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"n": 0}, ConfigError, "n is 0"),
        ({"n": 2, "temperature": 0.0}, ConfigError, "raise the temperature"),
        ({"temperature": 3.0}, ConfigError, "temperature is 3"),
        ({"backend": "other"}, ConfigError, "no generation backend 'other'"),
        ({"sequence_tokens": 2}, PoolError, "raise sequence_tokens"),
    ],
)
def test_useless_settings_are_refused(checkpoint, rows, store, change, error, says):
    with pytest.raises(error, match=says):
        sample_rows(checkpoint, rows, store=store, **{**SETTINGS, **change})
    assert not store.completions()


def test_a_folder_that_is_no_checkpoint_is_refused(rows, store, tmp_path):
    with pytest.raises(BaseModelError, match=str(tmp_path)):
        sample_rows(tmp_path, rows, store=store, **SETTINGS)
