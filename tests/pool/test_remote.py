"""Rows on object stores, through fsspec: one path for all; damaged files are named and may be left out."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import fsspec
import orjson
import pytest

from autosft.config import load_config
from autosft.errors import ConfigError, PoolError
from autosft.meta.inputs import initial_pool
from autosft.pool import read_pool, write_pool
from autosft.pool.remote import Progress


def lines(*names: str) -> bytes:
    return b"\n".join(orjson.dumps({"prompt": f"Say {name}.", "response": name}) for name in names)


@pytest.fixture
def store(tmp_path):
    """A bucket in memory with three kinds of shards."""
    memory = fsspec.filesystem("memory")
    memory.store.clear()
    memory.pipe("/bucket/rows/a.jsonl", lines("one", "two"))
    memory.pipe("/bucket/rows/deep/b.jsonl.gz", gzip.compress(lines("three")))
    (tmp_path / "c.jsonl").write_bytes(lines("four", "fünf"))
    write_pool(read_pool(tmp_path / "c.jsonl")[0], tmp_path / "c.parquet")
    memory.pipe("/bucket/rows/c.parquet", (tmp_path / "c.parquet").read_bytes())
    memory.pipe("/bucket/rows/notes.txt", b"not rows")
    return memory


def test_rows_of_a_bucket_are_those_of_the_same_files_here(store, tmp_path):
    for name in store.find("/bucket/rows"):
        target = tmp_path / "here" / name.removeprefix("/bucket/rows/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(store.cat(name))
    there, bad = read_pool("memory://bucket/rows")
    here, _ = read_pool(tmp_path / "here")
    assert not bad and there.fingerprint == here.fingerprint and len(there) == 5
    assert len(read_pool("memory://bucket/rows/a.jsonl")[0]) == 2


def test_one_file_lies_here_at_a_time_and_none_in_the_end(store, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    most = []
    real = store.get_file

    def watched(name, local, **options):
        most.append(len([f for f in Path(local).parent.iterdir() if f.is_file()]))
        return real(name, local, **options)

    monkeypatch.setattr(type(store), "get_file", lambda self, name, local, **options: watched(name, local))
    read_pool("memory://bucket/rows")
    assert most == [0, 0, 0] and not list(tmp_path.glob("autosft-rows-*"))


def test_a_damaged_or_lost_shard_is_named_and_left_out_only_when_asked_for(store, monkeypatch):
    store.pipe("/bucket/rows/d.parquet", b"PAR1 cut off")
    real = type(store).get_file

    def flaky(self, name, local, **options):
        if name.endswith("a.jsonl"):
            raise ConnectionError("gone")
        return real(self, name, local, **options)

    monkeypatch.setattr(type(store), "get_file", flaky)
    monkeypatch.setattr("autosft.pool.remote.time.sleep", lambda s: None)
    with pytest.raises(PoolError, match="3 tries"):
        read_pool("memory://bucket/rows")
    pool, bad = read_pool("memory://bucket/rows", bad_files="skip")
    assert [row.prompt for row in pool.rows()] == ["Say four.", "Say fünf.", "Say three."]
    assert [(b.file.rsplit("/", 1)[1], b.line) for b in bad] == [("a.jsonl", 0), ("d.parquet", 0)]
    assert all(b.file.startswith("memory://") for b in bad)


def test_a_damaged_local_file_is_left_out_the_same_way(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(lines("one"))
    (tmp_path / "b.parquet").write_bytes(b"nonsense")
    with pytest.raises(PoolError, match="damaged"):
        read_pool(tmp_path)
    pool, bad = read_pool(tmp_path, bad_files="skip")
    assert len(pool) == 1 and len(bad) == 1


@pytest.mark.parametrize(
    ("url", "words"),
    [("nosuch://x/y", "no file system"), ("memory://bucket/empty", "no file of rows"), ("s3://b/x", "s3fs")],
)
def test_what_cannot_be_reached_is_told(store, url, words):
    if url.startswith("s3") and _has("s3fs"):
        pytest.skip("s3fs is installed")
    with pytest.raises(PoolError) as refusal:
        read_pool(url)
    assert words in str(refusal.value)


def _has(name: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(name) is not None


def test_a_campaigns_pool_may_be_a_url_and_other_paths_may_not(store):
    config = load_config(["pool=memory://bucket/rows", "pool.bad_files=skip"])
    assert config.pool.path == "memory://bucket/rows" and len(initial_pool(config)[0]) == 5
    with pytest.raises(ConfigError, match="nothing lies at"):
        load_config(["model.path=memory://bucket/model"])


def test_progress_tells_rate_and_time_left(monkeypatch):
    now = iter([0.0, 2.0, 2.5, 4.0])
    monkeypatch.setattr("autosft.pool.remote.time.monotonic", lambda: next(now))
    said: list[str] = []
    progress = Progress(4, said.append)
    for n_rows in (100, 100, 200):
        progress.file_read(n_rows)
    assert said == [
        "100 rows from 1 files, 50 rows/s, 6 s left",
        "400 rows from 3 files, 100 rows/s, 1 s left",
    ]
