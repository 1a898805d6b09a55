"""On a real local Ray cluster: what the local engine decides, with any workers, after one is killed."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from autosft.engine.near import near_duplicates
from autosft.engine.words import find_grams, gram_table, hash_texts

ray = pytest.importorskip("ray")
pytest.importorskip("ray.data")
pytestmark = pytest.mark.slow


def pool(seed: int, n: int = 800) -> list[str]:
    draw = random.Random(seed)
    words = [f"w{i}é" for i in range(3000)]
    texts = [""]
    while len(texts) < n:
        copy = draw.choice(texts).split() if draw.random() < 0.4 else []
        for _ in range(draw.choice((0, 0, 1, 4)) if copy else 0):
            copy[draw.randrange(len(copy))] = draw.choice(words)
        texts.append(" ".join(copy or draw.choices(words, k=draw.choice((1, 2, 30, 90)))))
    return texts


@pytest.fixture(scope="module", params=[1, 4])
def cluster(request: Any) -> Iterator[int]:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(num_cpus=request.param, include_dashboard=False, log_to_driver=False, object_store_memory=2**28)
    ray.data.DataContext.get_current().enable_progress_bars = False
    try:
        yield request.param
    finally:
        ray.shutdown()


def local_near(texts: list[str]) -> dict[int, int]:
    found = near_duplicates(texts, 0.7)
    return {int(at): int(found[at]) for at in np.flatnonzero(found >= 0)}


def test_near_duplicates_equal_the_local_engine(cluster: int) -> None:
    from autosft.engine.ray_texts import dataset_of
    from autosft.engine.ray_texts import near_duplicates as near_ray

    texts = pool(1)
    expected = local_near(texts)
    assert len(expected) > 100
    assert near_ray(dataset_of(texts, 200), 0.7, 4) == expected
    assert near_ray(dataset_of(["one two three four", "", "five six seven"]), 0.7, 2) == {}


def test_hits_equal_the_local_engine_also_after_a_killed_worker(cluster: int) -> None:
    from autosft.engine.ray_texts import dataset_of, gram_hits

    texts = pool(2)
    grams = np.unique(hash_texts(texts[5:400:7]).ngrams(13)[0])
    rows, found = find_grams(hash_texts(texts), 13, gram_table(grams))
    order = np.lexsort((found, rows))
    assert len(rows) > 500
    dataset = dataset_of(texts, 100)
    assert [a.tolist() for a in gram_hits(dataset, 13, grams)] == [
        rows[order].tolist(),
        found[order].tolist(),
    ]

    marker: list[int] = []

    def slow(batch: Any) -> Any:
        time.sleep(0.3)
        return batch

    @ray.remote(num_cpus=0)
    class Seen:
        def __init__(self) -> None:
            self.pids: list[int] = []

        def add(self, pid: int) -> None:
            self.pids.append(pid)

        def all(self) -> list[int]:
            return self.pids

    seen = Seen.remote()

    def reported(batch: Any) -> Any:
        ray.get(seen.add.remote(os.getpid()))
        return slow(batch)

    def kill() -> None:
        for _ in range(300):
            pids = ray.get(seen.all.remote())
            if pids:
                os.kill(pids[-1], signal.SIGKILL)
                marker.append(pids[-1])
                return
            time.sleep(0.05)

    killer = threading.Thread(target=kill)
    killer.start()
    again = gram_hits(dataset.map_batches(reported, batch_format="pyarrow"), 13, grams)
    killer.join()
    assert marker, "no worker was killed"
    assert len(ray.get(seen.all.remote())) > 8, "the killed worker's block was not done again"
    assert [a.tolist() for a in again] == [rows[order].tolist(), found[order].tolist()]
