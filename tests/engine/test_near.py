"""Near-duplicates: the first of each kind stays, whatever is dropped is as near as was asked."""

from __future__ import annotations

import random

import numpy as np
import pytest

from autosft.engine.near import near_duplicates
from autosft.engine.normal import normal_words


def pool(seed: int, n: int = 900) -> list[str]:
    rng = random.Random(seed)
    words = [f"w{i}" for i in range(2000)]
    texts: list[str] = []
    for _ in range(n):
        if texts and rng.random() < 0.4:
            copy = rng.choice(texts).split()
            for _ in range(rng.choice((0, 1, 2, 5))):
                if copy:
                    copy[rng.randrange(len(copy))] = rng.choice(words)
            texts.append(" ".join(copy))
        else:
            texts.append(" ".join(rng.choice(words) for _ in range(rng.choice((0, 1, 2, 3, 30, 120)))))
    return texts


def shingles(text: str) -> set[tuple[str, ...]]:
    words = normal_words(text)
    if 0 < len(words) < 3:
        return {tuple(words)}
    return set(zip(words, words[1:], words[2:], strict=False))


def jaccard(a: str, b: str) -> float:
    one, two = shingles(a), shingles(b)
    return len(one & two) / len(one | two) if one | two else 0.0


@pytest.mark.parametrize("threshold", [0.6, 0.8, 1.0])
def test_against_all_pairs(threshold: float) -> None:
    texts = pool(1)
    found = near_duplicates(texts, threshold)
    missed = 0
    for i, text in enumerate(texts):
        if found[i] >= 0:
            assert found[found[i]] == -1, "a kept text stands for it"
            assert jaccard(text, texts[found[i]]) >= threshold
        elif shingles(text):
            missed += any(found[j] < 0 and jaccard(text, texts[j]) >= threshold for j in range(i))
    dropped = int((found >= 0).sum())
    # Bands find pairs of .6 with probability .98, of .8 and more with .9999.
    assert dropped > 50 and missed <= (0.03 if threshold < 0.8 else 0) * dropped


def test_threads_and_repetition_change_nothing() -> None:
    texts = pool(2)
    first = near_duplicates(texts, 0.7, workers=1)
    assert np.array_equal(first, near_duplicates(texts, 0.7, workers=4))
    assert near_duplicates([], 0.7).tolist() == []
    assert near_duplicates(["", "", "a", "a", "A!"], 0.7).tolist() == [-1, -1, -1, 2, 2]
