"""Nearest texts: what the search by rare words finds is what comparing all pairs finds."""

from __future__ import annotations

import random

import numpy as np
import pytest

from autosft.engine import nearest
from autosft.engine.nearest import nearest_texts


def pool(n: int, seed: int = 0) -> list[str]:
    rng = random.Random(seed)
    words = [f"w{i}" for i in range(4000)]
    weights = [1 / (k + 3) for k in range(len(words))]
    return [" ".join(rng.choices(words, weights, k=rng.randrange(3, 60))) for _ in range(n)]


def queries_of(texts: list[str], n: int, seed: int = 1) -> list[str]:
    rng = random.Random(seed)
    found = []
    for text in rng.sample(texts, n):
        words = text.split()
        for _ in range(max(1, len(words) // 6)):
            words[rng.randrange(len(words))] = f"new{rng.randrange(10**6)}"
        found.append(" ".join(words))
    return found


def test_the_nearest_is_that_of_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = pool(6_000)
    queries = queries_of(texts, 60)
    places, likeness = nearest_texts(queries, texts, 5)
    monkeypatch.setattr(nearest, "ALL_PAIRS", 10**12)
    every, values = nearest_texts(queries, texts, 5)
    same = float((np.abs(likeness[:, 0] - values[:, 0]) < 1e-4).mean())
    assert same >= 0.95, f"{same:.0%} of the nearest are as near as the nearest of all"
    assert (np.diff(likeness, axis=1) <= 0).all() and (places >= 0).all()
    assert every.shape == (60, 5)


def test_threads_and_chance_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest, "ALL_PAIRS", 0)
    texts = pool(3_000, seed=2) * 2  # equally near ones: the earlier wins
    queries = queries_of(texts, 20)
    one, value_one = nearest_texts(queries, texts, 3, workers=1)
    four, value_four = nearest_texts(queries, texts, 3, workers=4)
    assert np.array_equal(one, four) and np.array_equal(value_one, value_four)
    assert (one[:, 0] < 3_000).all()


def test_little_and_nothing() -> None:
    assert nearest_texts([], ["a"], 2)[0].shape == (0, 2)
    assert nearest_texts(["a b"], [], 2)[0].tolist() == [[-1, -1]]
    places, likeness = nearest_texts(["the fox"], ["a hen", "the fox", ""], 2)
    assert places[0, 0] == 1 and likeness[0, 0] == 100.0
    assert nearest_texts([""], ["a", "b"], 1)[0].shape == (1, 1)
