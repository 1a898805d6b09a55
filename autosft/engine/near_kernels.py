"""Compiled loops of near-duplicate search."""

from __future__ import annotations

from typing import Any

import numpy as np

from autosft.engine.compiled import compiled
from autosft.engine.kernels import mix

U = np.uint64


@compiled
def band_keys(shingles: Any, starts: Any, odd: Any, plus: Any, bands: Any, keys: Any) -> None:
    """Write one key a band: mixed minima of `odd * x + plus` (32 bits, wrapping) over a text's shingles."""
    hashes = len(odd)
    rows = hashes // bands
    least = np.empty(hashes, np.uint32)
    for t in range(len(starts) - 1):
        if starts[t] == starts[t + 1]:
            continue
        least[:] = np.uint32(0xFFFFFFFF)
        for j in range(starts[t], starts[t + 1]):
            x = np.uint32(shingles[j] >> U(32))
            for k in range(hashes):
                value = np.uint32(np.uint32(odd[k] * x) + plus[k])
                least[k] = min(value, least[k])
        for band in range(bands):
            key = U(band + 1)
            for k in range(band * rows, band * rows + rows):
                key = mix(key ^ U(least[k]))
            keys[t, band] = key | U(1)


@compiled
def _set_of(shingles: Any, starts: Any, t: Any, sets: Any, sizes: Any) -> Any:
    """Sort a text's shingles in place, distinct ones first; return how many those are."""
    if sizes[t] < 0:
        own = np.unique(shingles[starts[t] : starts[t + 1]])
        sizes[t] = len(own)
        sets[starts[t] : starts[t] + len(own)] = own
    return sizes[t]


@compiled
def _enough(sets: Any, a: Any, n: Any, b: Any, m: Any, threshold: Any) -> Any:
    """Whether two sorted sets have a Jaccard similarity of at least the threshold."""
    if min(n, m) < threshold * max(n, m):
        return False
    shared = i = j = 0
    while i < n and j < m:
        x, y = sets[a + i], sets[b + j]
        if x == y:
            shared += 1
            i += 1
            j += 1
        elif x < y:
            i += 1
        else:
            j += 1
    return shared / (n + m - shared) >= threshold


@compiled
def keep_first(keys: Any, shingles: Any, starts: Any, threshold: Any, found: Any) -> None:
    """Go through texts in order; one that is near an earlier kept text of an equal band key is not kept.

    Kept texts of one band key form a chain; a slot of the table holds the newest of them.
    """
    n, bands = keys.shape
    size = 1
    while size < 2 * n * bands + 2:
        size *= 2
    mask = U(size - 1)
    slots = np.full(size, -1, np.int64)  # entry = text * bands + band
    before = np.full(n * bands, -1, np.int64)
    sets = np.empty(len(shingles), np.uint64)
    sizes = np.full(n, -1, np.int64)
    tried = np.full(n, -1, np.int64)
    for t in range(n):
        if starts[t] == starts[t + 1]:
            continue
        for band in range(bands):
            key = keys[t, band]
            slot = mix(key) & mask
            while slots[slot] >= 0 and keys[slots[slot] // bands, slots[slot] % bands] != key:
                slot = (slot + U(1)) & mask
            entry = slots[slot]
            while entry >= 0:
                other = entry // bands
                if tried[other] != t:
                    tried[other] = t
                    mine = _set_of(shingles, starts, t, sets, sizes)
                    theirs = _set_of(shingles, starts, other, sets, sizes)
                    if _enough(sets, starts[t], mine, starts[other], theirs, threshold):
                        found[t] = other
                        break
                entry = before[entry]
            if found[t] >= 0:
                break
        if found[t] >= 0:
            continue
        for band in range(bands):
            key = keys[t, band]
            slot = mix(key) & mask
            while slots[slot] >= 0 and keys[slots[slot] // bands, slots[slot] % bands] != key:
                slot = (slot + U(1)) & mask
            before[t * bands + band] = slots[slot]
            slots[slot] = t * bands + band
