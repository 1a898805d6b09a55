"""Compiled loops of the search for nearest texts."""

from __future__ import annotations

from typing import Any

import numpy as np

from autosft.engine.compiled import compiled
from autosft.engine.kernels import mix

U = np.uint64


def table_of(words: Any) -> tuple[Any, Any]:
    """Return an open-addressed table of distinct words: (keys, place of each)."""
    size = 1
    while size < 4 * len(words) + 2:
        size *= 2
    keys, places = np.zeros(size, dtype=np.uint64), np.full(size, -1, dtype=np.int64)
    fill(words, keys, places)
    return keys, places


@compiled
def fill(words: Any, keys: Any, places: Any) -> None:
    """Fill the table."""
    mask = U(len(keys) - 1)
    for i in range(len(words)):
        slot = mix(words[i]) & mask
        while places[slot] >= 0:
            slot = (slot + U(1)) & mask
        keys[slot] = words[i]
        places[slot] = i


@compiled
def count(words: Any, starts: Any, first: Any, last: Any, keys: Any, places: Any, n: Any) -> Any:
    """Return in how many texts of a span each word of the table occurs."""
    found = np.zeros(n, np.int64)
    seen = np.full(n, -1, np.int64)
    mask = U(len(keys) - 1)
    for t in range(first, last):
        for j in range(starts[t], starts[t + 1]):
            slot = mix(words[j]) & mask
            while places[slot] >= 0:
                if keys[slot] == words[j]:
                    w = places[slot]
                    if seen[w] != t:
                        seen[w] = t
                        found[w] += 1
                    break
                slot = (slot + U(1)) & mask
    return found


@compiled
def best(
    words: Any,
    starts: Any,
    first: Any,
    last: Any,
    keys: Any,
    places: Any,
    weight: Any,
    bounds: Any,
    owners: Any,
    n_queries: Any,
    n_best: Any,
) -> Any:
    """Return (texts, scores), each [queries, n_best]: the texts of a span with the most weight in common.

    Equal scores keep the earlier text, so that spans may be joined in any number.
    """
    top = np.full((n_queries, n_best), -1, np.int64)
    value = np.zeros((n_queries, n_best), np.float32)
    least = np.zeros(n_queries, np.int64)  # place of the lowest score kept
    score = np.zeros(n_queries, np.float32)
    touched = np.empty(n_queries, np.int64)
    seen = np.full(len(weight), -1, np.int64)
    mask = U(len(keys) - 1)
    for t in range(first, last):
        n_touched = 0
        for j in range(starts[t], starts[t + 1]):
            slot = mix(words[j]) & mask
            while places[slot] >= 0:
                if keys[slot] == words[j]:
                    w = places[slot]
                    if seen[w] != t:
                        seen[w] = t
                        if weight[w] > 0:
                            for k in range(bounds[w], bounds[w + 1]):
                                q = owners[k]
                                if score[q] == 0:
                                    touched[n_touched] = q
                                    n_touched += 1
                                score[q] += weight[w]
                    break
                slot = (slot + U(1)) & mask
        for i in range(n_touched):
            q = touched[i]
            s = score[q]
            score[q] = 0
            if s > value[q, least[q]]:
                top[q, least[q]] = t
                value[q, least[q]] = s
                low = 0
                for k in range(1, n_best):
                    # Among equally low ones the latest goes first.
                    if value[q, k] < value[q, low] or (
                        value[q, k] == value[q, low] and top[q, k] > top[q, low]
                    ):
                        low = k
                least[q] = low
    return top, value
