"""The engine's operators over a Ray cluster: the same kernels on blocks of texts, equal results.

A dataset here has the columns `place` (int64, distinct; the order of the pool) and `text` (string). Only
numbers come back to the driver: one pair of integers a linked text, or one a hit.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from autosft.engine.near import BANDS, band_keys, shingles_of
from autosft.engine.near import near_duplicates as near_here
from autosft.engine.words import IntArray, UIntArray, find_grams, gram_table, hash_column, hash_texts

if TYPE_CHECKING:
    from ray.data import Dataset

_BLOCK_ROWS = 16_384
_KEY_BYTES = 16  # a band key and a place
_PIECE_BYTES = 64 << 20


def dataset_of(texts: list[str] | pa.Array | pa.ChunkedArray, block_rows: int = _BLOCK_ROWS) -> Dataset:
    """Return texts as a dataset, `block_rows` a block; their places are their indices."""
    import ray.data

    column = pa.array(texts, pa.large_string()) if isinstance(texts, list) else texts
    table = pa.table({"place": np.arange(len(column), dtype=np.int64), "text": column})
    blocks = [table.slice(first, block_rows) for first in range(0, max(1, len(table)), block_rows)]
    return ray.data.from_arrow(blocks)


def near_duplicates(dataset: Dataset, threshold: float, parts: int | None = None) -> dict[int, int]:
    """Find near-duplicates among texts spread over a cluster.

    Texts that share a MinHash band are linked (one shuffle of a key and a place a band); whatever is linked,
    directly or through others, is sent to one task (one shuffle of those texts), which decides as the local
    engine does. A decision depends on linked texts only, so the result is the local one.

    Args:
        dataset: Columns `place` and `text`; earlier places win.
        threshold: Least Jaccard similarity of the sets of word trigrams, in [0.5, 1].
        parts: Pieces that a shuffle makes; None: at least 16, and more so that a piece of keys stays below
            `_PIECE_BYTES`.

    Returns:
        For each dropped text's place, the place of the kept text it is near to.
    """
    import ray

    if parts is None:
        parts = max(16, math.ceil(dataset.count() * BANDS * _KEY_BYTES / _PIECE_BYTES))
    keys = dataset.map_batches(_keys_of, batch_format="pyarrow", batch_size=_BLOCK_ROWS)
    # Whole pieces at once: a call a band key would cost more than all hashing.
    links = keys.repartition(parts, keys=["key"]).map_batches(
        _links_of, batch_format="pyarrow", batch_size=None
    )
    places, others = _columns(links, "place", "other")
    if not len(places):
        return {}
    members, group = _components(places, others)
    shared = ray.put((members, group))
    chosen = dataset.map_batches(
        _members_of, batch_format="pyarrow", batch_size=_BLOCK_ROWS, fn_kwargs={"shared": shared}
    )
    decided = chosen.repartition(parts, keys=["group"]).map_batches(
        _decide, batch_format="pyarrow", batch_size=None, fn_kwargs={"threshold": threshold}
    )
    dropped, kept = _columns(decided, "place", "other")
    return dict(sorted(zip(dropped.tolist(), kept.tolist(), strict=True)))


def gram_hits(dataset: Dataset, n: int, grams: UIntArray) -> tuple[IntArray, IntArray]:
    """Look the n-grams of texts up in a benchmark's, which every node is sent once.

    Args:
        dataset: Columns `place` and `text`.
        n: Words of an n-gram.
        grams: Distinct digests of the benchmark's n-grams.

    Returns:
        (place of the text, index into `grams`) of every n-gram that the benchmark holds, sorted.
    """
    import ray

    shared = ray.put(gram_table(grams))
    hits = dataset.map_batches(
        _hits_of, batch_format="pyarrow", batch_size=_BLOCK_ROWS, fn_kwargs={"n": n, "shared": shared}
    )
    places, found = _columns(hits, "place", "gram")
    order = np.lexsort((found, places))
    return places[order], found[order]


def _columns(dataset: Dataset, *names: str) -> list[NDArray[np.int64]]:
    """Run a dataset and bring these columns of integers here."""
    import ray

    # A stage without a row gives blocks without columns.
    tables = [ray.get(ref) for ref in dataset.to_arrow_refs()]
    parts = [table for table in tables if len(table)]
    if not parts:
        return [np.zeros(0, dtype=np.int64) for _ in names]
    whole = pa.concat_tables([part.select(list(names)) for part in parts])
    return [whole.column(name).to_numpy().astype(np.int64) for name in names]


def _keys_of(batch: pa.Table) -> pa.Table:
    shingles, starts = shingles_of(hash_column(batch.column("text"), 1))
    keys = band_keys(shingles, starts, 1)
    filled = np.diff(starts) > 0  # an empty text is near nothing
    places = batch.column("place").to_numpy()[filled]
    # Arrow has no order on unsigned keys in every shuffle: the same bits, signed.
    flat = keys[filled].reshape(-1).view(np.int64)
    return pa.table({"key": flat, "place": np.repeat(places, keys.shape[1])})


def _links_of(part: pa.Table) -> pa.Table:
    """Link every place with the first one of the same key."""
    if not len(part):
        return pa.table({"place": pa.array([], pa.int64()), "other": pa.array([], pa.int64())})
    keys, places = part.column("key").to_numpy(), part.column("place").to_numpy()
    order = np.lexsort((places, keys))
    keys, places = keys[order], places[order]
    new = np.concatenate([[True], keys[1:] != keys[:-1]])
    first = places[np.maximum.accumulate(np.where(new, np.arange(len(keys)), 0))]
    linked = first != places
    pairs = np.unique(np.stack([places[linked], first[linked]], axis=1), axis=0)
    return pa.table({"place": pairs[:, 0], "other": pairs[:, 1]})


def _components(places: IntArray, others: IntArray) -> tuple[IntArray, IntArray]:
    """Return the sorted places that are linked to any, and the number of the component each is in."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    members, ends = np.unique(np.concatenate([places, others]), return_inverse=True)
    a, b = ends[: len(places)], ends[len(places) :]
    graph = coo_array((np.ones(len(a), dtype=np.int8), (a, b)), shape=(len(members), len(members)))
    return members, connected_components(graph, directed=False)[1].astype(np.int64)


def _members_of(batch: pa.Table, shared: Any) -> pa.Table:
    members, group = _fetched(shared)
    places = batch.column("place").to_numpy()
    at = np.minimum(np.searchsorted(members, places), len(members) - 1)
    linked = members[at] == places
    kept = batch.filter(pa.array(linked))
    return kept.append_column("group", pa.array(group[at[linked]]))


def _decide(part: pa.Table, threshold: float) -> pa.Table:
    """Decide some groups together: texts of different groups share no band, so they do not meet."""
    if not len(part):
        return pa.table({"place": pa.array([], pa.int64()), "other": pa.array([], pa.int64())})
    ordered = part.sort_by("place")
    places = ordered.column("place").to_numpy()
    found = near_here(hash_texts(ordered.column("text").to_pylist(), 1), threshold, 1)
    dropped = found >= 0
    return pa.table({"place": places[dropped], "other": places[found[dropped]]})


def _hits_of(batch: pa.Table, n: int, shared: Any) -> pa.Table:
    texts, found = find_grams(hash_column(batch.column("text"), 1), n, _fetched(shared))
    return pa.table({"place": batch.column("place").to_numpy()[texts], "gram": found})


def _fetched(shared: Any) -> Any:
    import ray

    return ray.get(shared) if isinstance(shared, ray.ObjectRef) else shared
