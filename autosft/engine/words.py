"""Texts as sequences of hashed words, compiled: n-grams and signatures of whole pools come from these.

The hash of a word is of its normal form's UTF-8 (`engine.normal`). Plain loops over Arrow's buffers release
the interpreter, so slices of a column are worked on side by side; the results depend on neither.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from autosft.engine import kernels
from autosft.engine.normal import CharTable, normal_words

UIntArray = NDArray[np.uint64]
IntArray = NDArray[np.int64]
_T = TypeVar("_T")
#: Raise it when the same text would get other hashes; digests of sealed suites carry it.
SCHEME = 2
_CHARS = CharTable()


@dataclass(frozen=True, slots=True)
class HashedTexts:
    """Word hashes of several texts, one after another: text i is `words[starts[i]:starts[i+1]]`."""

    words: UIntArray
    starts: IntArray

    def ngrams(self, n: int) -> tuple[UIntArray, IntArray]:
        """Return the hash of every n-gram that lies inside one text, and the text it lies in."""
        counts = np.maximum(np.diff(self.starts) - (n - 1), 0)
        grams = np.empty(int(counts.sum()), dtype=np.uint64)
        kernels.ngrams(self.words, self.starts, n, grams)
        return grams, np.repeat(np.arange(len(counts)), counts)

    def whole(self) -> UIntArray:
        """Return one hash of each text's sequence of words."""
        found = np.empty(len(self.starts) - 1, dtype=np.uint64)
        kernels.whole(self.words, self.starts, found)
        return found


def hash_texts(texts: Iterable[str], workers: int | None = None) -> HashedTexts:
    """Return the word hashes of texts, in order; half a surrogate pair counts as a question mark."""
    encoded = [text.encode("utf-8", "replace") for text in texts]
    offsets = np.cumsum([0, *(len(part) for part in encoded)], dtype=np.int64)
    return hash_buffer(np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets, workers)


def hash_column(column: pa.Array, workers: int | None = None) -> HashedTexts:
    """Return the word hashes of an Arrow column of strings without nulls."""
    data, offsets = text_buffers(column)
    return hash_buffer(data, offsets, workers)


def text_buffers(column: pa.Array) -> tuple[NDArray[np.uint8], IntArray]:
    """Return the bytes and the offsets of a column of strings; nothing is copied but narrow offsets."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], pa.large_string())
    wide = pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type)
    _, places, data = column.buffers()
    kind = np.dtype(np.int64 if wide else np.int32)
    offsets = np.frombuffer(places, dtype=kind, count=len(column) + 1, offset=column.offset * kind.itemsize)
    content = np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, dtype=np.uint8)
    return content, offsets.astype(np.int64, copy=False)


def hash_buffer(data: NDArray[np.uint8], offsets: IntArray, workers: int | None = None) -> HashedTexts:
    """Return the word hashes of texts in one buffer.

    Args:
        data: UTF-8 of all texts.
        offsets: [texts + 1]: text i is `data[offsets[i]:offsets[i + 1]]`.
        workers: Threads; one a core if None. The result does not depend on it.
    """
    parts = side_by_side(lambda a, b: _hash_slice(data, offsets[a : b + 1]), offsets, workers)
    if len(parts) == 1:
        return parts[0]
    lengths = np.concatenate([np.diff(part.starts) for part in parts])
    starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
    return HashedTexts(np.concatenate([part.words for part in parts]), starts)


def side_by_side(work: Callable[[int, int], _T], offsets: IntArray, workers: int | None) -> list[_T]:
    """Return what `work(first, last)` returns for slices of about equal size, in order."""
    n = len(offsets) - 1
    size = int(offsets[-1] - offsets[0]) if n else 0
    workers = min(workers or os.cpu_count() or 1, max(1, size >> 20), max(1, n))
    if workers == 1:
        return [work(0, n)]
    wanted = offsets[0] + np.arange(1, workers) * (size // workers)
    bounds = [0, *np.searchsorted(offsets, wanted).tolist(), n]
    spans = [(a, b) for a, b in itertools.pairwise(bounds) if b > a]
    with ThreadPoolExecutor(len(spans)) as pool:
        return list(pool.map(lambda span: work(*span), spans))


def _hash_slice(data: NDArray[np.uint8], offsets: IntArray) -> HashedTexts:
    table = _CHARS
    seen = np.zeros(0x110000, dtype=np.bool_)
    if kernels.met(data, offsets, table.starts, seen):
        table.learn(np.flatnonzero(seen).tolist())
    words, starts, alone = _run(data, offsets, table, whole_chars=True)
    if not alone.any():
        return HashedTexts(words, starts)
    places = np.flatnonzero(alone)
    # Normalised by the definition itself, then hashed as they are.
    done = [
        " ".join(normal_words(bytes(data[offsets[i] : offsets[i + 1]]).decode("utf-8", "replace"))).encode()
        for i in places.tolist()
    ]
    own_offsets = np.cumsum([0, *(len(part) for part in done)], dtype=np.int64)
    buffer = np.frombuffer(b"".join(done), dtype=np.uint8)
    own, own_starts, _ = _run(buffer, own_offsets, table, whole_chars=False)
    return _merged(words, starts, own, own_starts, places)


def _run(
    data: NDArray[np.uint8], offsets: IntArray, table: CharTable, *, whole_chars: bool
) -> tuple[UIntArray, IntArray, NDArray[np.bool_]]:
    n = len(offsets) - 1
    starts = np.zeros(n + 1, dtype=np.int64)
    alone = np.zeros(n, dtype=np.bool_)
    room = int(offsets[-1] - offsets[0]) // 4 + n + 64 if n else 0
    while True:
        words = np.empty(room, dtype=np.uint64)
        used = kernels.words(
            data, offsets, table.starts, table.lengths, table.text, whole_chars, words, starts, alone
        )
        if used >= 0:
            return words[:used], starts, alone
        room *= 2


def _merged(
    words: UIntArray, starts: IntArray, own: UIntArray, own_starts: IntArray, places: IntArray
) -> HashedTexts:
    """Put the texts that were hashed apart back into their places."""
    lengths = np.diff(starts)
    lengths[places] = np.diff(own_starts)
    merged = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
    mine = np.zeros(len(lengths), dtype=bool)
    mine[places] = True
    is_own = np.repeat(mine, lengths)
    out = np.empty(int(merged[-1]), dtype=np.uint64)
    out[is_own], out[~is_own] = own, words
    return HashedTexts(out, merged)


def mix_bits(values: UIntArray) -> UIntArray:
    """Spread the bits of 64-bit values (a bijection): a digest then shows nothing of how it was summed."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def member(values: UIntArray, table: UIntArray) -> tuple[IntArray, IntArray]:
    """Return (positions in `values`, positions in sorted `table`) of the values that the table holds."""
    if not len(table) or not len(values):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    at = np.minimum(np.searchsorted(table, values), len(table) - 1)
    hit = np.flatnonzero(table[at] == values)
    return hit, at[hit]


def gram_table(grams: UIntArray) -> tuple[Any, ...]:
    """Return what `kernels.find` needs to look up distinct n-grams: a bit filter and a hash table."""
    bits = max(10, int(np.ceil(np.log2(2 * len(grams) + 2))))
    filter_bits = np.zeros((1 << (bits + 3)) // 64, dtype=np.uint64)
    keys = np.zeros(1 << bits, dtype=np.uint64)
    places = np.full(1 << bits, -1, dtype=np.int32)
    kernels.fill(grams, filter_bits, keys, places)
    return filter_bits, keys, places


def find_grams(hashed: HashedTexts, n: int, table: Sequence[Any]) -> tuple[IntArray, IntArray]:
    """Return (text, place among the table's grams) of every n-gram of the texts that the table holds."""
    room = 1 << 12
    while True:
        texts, places = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
        found = kernels.find(hashed.words, hashed.starts, n, *table, texts, places)
        if found <= room:
            return texts[:found], places[:found]
        room = found
