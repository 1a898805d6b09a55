"""The cache of rows: equal content is made once, by any process; a kill or damage costs only work."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from autosft.engine.ragged import Ragged, RaggedCache, joined, sizes, trim


def rows(keys: list[int]) -> tuple[np.ndarray, Ragged]:
    sizes = [key % 7 for key in keys]
    ids = np.concatenate([np.full(size, key % 1000) for key, size in zip(keys, sizes, strict=True)] + [[]])
    offsets = np.cumsum([0, *sizes]).astype(np.int64)
    marks = (np.arange(len(ids)) % 2).astype(np.uint8)
    return np.array(keys, dtype=np.uint64), Ragged(
        ids.astype(np.int32), marks, offsets, np.array([k % 3 == 0 for k in keys])
    )


def check(cache: RaggedCache, keys: list[int]) -> None:
    shard, row = cache.find(np.array(keys, dtype=np.uint64))
    assert (shard >= 0).all()
    found = cache.take(shard, row)
    for number, key in enumerate(keys):
        own = found.ids[found.offsets[number] : found.offsets[number + 1]].tolist()
        assert own == [key % 1000] * (key % 7) and found.cut[number] == (key % 3 == 0)
    assert cache.lengths(shard, row)[0].tolist() == [key % 7 for key in keys]


def test_rows_come_back_in_any_order_from_memory_and_disk(tmp_path: Path) -> None:
    cache = RaggedCache(tmp_path)
    cache.add(*rows(list(range(50))))
    cache.add(*rows(list(range(100, 130))))
    for known in (cache, RaggedCache(tmp_path)):
        check(known, [129, 3, 49, 3, 0, 100])
        assert known.find(np.array([99, 5], dtype=np.uint64))[0].tolist() == [-1, 0]
    assert RaggedCache(None).find(np.array([1], dtype=np.uint64))[0].tolist() == [-1]


def add_many(folder: str, first: int) -> None:
    cache = RaggedCache(Path(folder))
    for start in range(first, first + 60, 6):
        cache.add(*rows(list(range(start, start + 6))))
        RaggedCache(Path(folder)).find(np.array([10**6], dtype=np.uint64))  # reads, and folds


@pytest.mark.slow
def test_processes_that_write_and_fold_at_once(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=add_many, args=(str(tmp_path), first)) for first in (0, 40, 1000)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
        assert worker.exitcode == 0
    # Folding may race and lose a file: what is found must be right, and most must be there.
    cache = RaggedCache(tmp_path)
    keys = [*range(100), *range(1000, 1060)]
    shard, _ = cache.find(np.array(keys, dtype=np.uint64))
    check(cache, [key for key, known in zip(keys, (shard >= 0).tolist(), strict=True) if known])
    assert (shard >= 0).mean() > 0.5


def write_for_ever(folder: str) -> None:
    cache, key = RaggedCache(Path(folder)), 0
    while True:
        cache.add(*rows(list(range(key, key + 2000))))
        key += 2000


@pytest.mark.slow
def test_a_kill_in_the_middle_of_writing_leaves_whole_files(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    worker = spawn.Process(target=write_for_ever, args=(str(tmp_path),))
    worker.start()
    while not list(tmp_path.glob("*.arrow")):
        time.sleep(0.05)
    os.kill(worker.pid or 0, signal.SIGKILL)
    worker.join(30)
    check(RaggedCache(tmp_path), list(range(2000)))


def test_damage_is_removed_and_room_is_kept(tmp_path: Path) -> None:
    cache = RaggedCache(tmp_path)
    cache.add(*rows(list(range(20))))
    (tmp_path / "0-bad.arrow").write_bytes(b"rubbish")
    fresh = RaggedCache(tmp_path)
    check(fresh, list(range(20)))
    fresh.find(np.array([77], dtype=np.uint64))
    assert not (tmp_path / "0-bad.arrow").exists()
    small = RaggedCache(tmp_path / "encoder", room_bytes=3000)
    for start in range(100, 1100, 100):
        small.add(*rows(list(range(start, start + 100))))
        assert sum(f.stat().st_size for f in tmp_path.rglob("*.arrow")) <= 3000 or start == 100
    assert trim(tmp_path, 0) > 0 or not list(tmp_path.rglob("*.arrow"))
    assert sizes(tmp_path) == {}


def test_a_folder_that_cannot_be_written_costs_only_work(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    cache = RaggedCache(blocked / "cache")
    with pytest.raises(OSError):
        (blocked / "cache").mkdir()
    cache.add(*rows([1, 2, 3]))
    check(cache, [3, 1])


def test_joining_and_taking() -> None:
    _, a = rows([5, 6])
    _, b = rows([9])
    both = joined([a, b])
    assert (
        both.lengths.tolist() == [5, 6, 2] and both.take(np.array([2, 0])).ids.tolist() == [9] * 2 + [5] * 5
    )
