"""The texts nearest to some queries: candidates by shared rare words, ranked by rapidfuzz.

One pass counts in how many texts each word of a query occurs, a second adds up the inverse document
frequencies (Spaerck Jones 1972) of the words a text shares with a query; only the best candidates of each
query are compared in full. Words that a tenth of all texts hold say nothing and are passed over.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autosft.engine import nearest_kernels
from autosft.engine.words import HashedTexts, IntArray, hash_texts, side_by_side

CANDIDATES = 50
COMMON_FRAC = 0.1
#: Below so many comparisons, all pairs are compared: it costs less than looking for candidates.
ALL_PAIRS = 200_000


def nearest_texts(
    queries: Sequence[str],
    texts: Sequence[str],
    n: int,
    *,
    hashed: HashedTexts | None = None,
    workers: int | None = None,
) -> tuple[IntArray, NDArray[np.float32]]:
    """Find the texts nearest to each query.

    Args:
        queries: What to look for.
        texts: Where to look.
        n: Texts wanted of each query.
        hashed: The texts' word hashes, where they are at hand.
        workers: Threads; one a core if None. The result does not depend on it.

    Returns:
        (places, likeness), each [queries, n]: nearest first, equally near ones in the order of the texts;
        likeness is rapidfuzz's `token_sort_ratio`, 0 to 100. Missing ones are -1 with likeness 0.
    """
    places = np.full((len(queries), n), -1, dtype=np.int64)
    likeness = np.zeros((len(queries), n), dtype=np.float32)
    if not len(texts) or not len(queries):
        return places, likeness
    if len(queries) * len(texts) <= ALL_PAIRS:
        candidates = [np.arange(len(texts))] * len(queries)
    else:
        candidates = _candidates(queries, hashed or hash_texts(texts, workers), workers)
    for number, (query, own) in enumerate(zip(queries, candidates, strict=True)):
        # A query of common words alone has no rare one to be looked up by: it is compared with every text.
        wanted = own if len(own) >= min(n, len(texts)) else np.arange(len(texts))
        found = _ranked(query, texts, wanted)[:n]
        for rank, (place, value) in enumerate(found):
            places[number, rank], likeness[number, rank] = place, value
    return places, likeness


def _ranked(query: str, texts: Sequence[str], candidates: IntArray) -> list[tuple[int, float]]:
    from rapidfuzz import fuzz, process

    if not len(candidates):
        return []
    ordered = np.sort(candidates)
    values = process.cdist([query], [texts[i] for i in ordered.tolist()], scorer=fuzz.token_sort_ratio)[0]
    best = np.argsort(-values, kind="stable")
    return [(int(ordered[i]), float(values[i])) for i in best.tolist()]


def _candidates(queries: Sequence[str], texts: HashedTexts, workers: int | None) -> list[IntArray]:
    """Return each query's candidates: the texts that share the most of its rare words."""
    asked = hash_texts(queries, workers)
    owner = np.repeat(np.arange(len(queries)), np.diff(asked.starts))
    pairs = np.unique(np.stack([asked.words, owner.astype(np.uint64)]), axis=1)
    words, first = np.unique(pairs[0], return_index=True)
    bounds = np.append(first, pairs.shape[1]).astype(np.int64)
    owners = pairs[1].astype(np.int64)
    table = nearest_kernels.table_of(words)
    n_texts = len(texts.starts) - 1
    counted = side_by_side(
        lambda a, b: nearest_kernels.count(texts.words, texts.starts, a, b, *table, len(words)),
        texts.starts * 8,
        workers,
    )
    frequency = np.sum(counted, axis=0)
    weight = np.array([math.log(n_texts / max(1, f)) for f in frequency.tolist()], dtype=np.float32)
    weight[frequency > max(COMMON_FRAC * n_texts, CANDIDATES)] = 0.0
    parts: list[tuple[Any, Any]] = side_by_side(
        lambda a, b: nearest_kernels.best(
            texts.words, texts.starts, a, b, *table, weight, bounds, owners, len(queries), CANDIDATES
        ),
        texts.starts * 8,
        workers,
    )
    found = []
    for number in range(len(queries)):
        place = np.concatenate([p[0][number] for p in parts])
        value = np.concatenate([p[1][number] for p in parts])
        order = np.lexsort((place, -value))
        kept = place[order][value[order] > 0][:CANDIDATES]
        found.append(kept.astype(np.int64))
    return found
