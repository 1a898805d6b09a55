"""Near-duplicates: candidates by MinHash bands, each verified by the exact overlap of its word n-grams.

Source: Broder, "On the resemblance and containment of documents" (1997); banding after Leskovec, Rajaraman
and Ullman, "Mining of Massive Datasets", section 3.4.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from autosft.engine import near_kernels
from autosft.engine.words import HashedTexts, IntArray, UIntArray, hash_texts, side_by_side

SHINGLE_WORDS = 3
BANDS, ROWS = 28, 4  # finds pairs of Jaccard .6 with probability .98, of .5 with .83
_SEED = 20970


def near_duplicates(
    texts: Sequence[str] | HashedTexts, threshold: float, workers: int | None = None
) -> IntArray:
    """Find near-duplicates among texts.

    Args:
        texts: Texts, or their word hashes; earlier ones win.
        threshold: Least Jaccard similarity of the sets of word trigrams, in [0.5, 1].
        workers: Threads; one a core if None. The result does not depend on it.

    Returns:
        For each text the index of an earlier kept text it is a near-duplicate of, or -1 where it is kept.
    """
    hashed = texts if isinstance(texts, HashedTexts) else hash_texts(texts, workers)
    shingles, starts = shingles_of(hashed)
    keys = band_keys(shingles, starts, workers)
    found = np.full(len(starts) - 1, -1, dtype=np.int64)
    near_kernels.keep_first(keys, shingles, starts, threshold, found)
    return found


def shingles_of(hashed: HashedTexts) -> tuple[UIntArray, IntArray]:
    """Word trigrams of each text, as they come; a shorter text is one shingle of its own."""
    counts = np.diff(hashed.starts)
    sizes = np.where(counts >= SHINGLE_WORDS, counts - (SHINGLE_WORDS - 1), np.minimum(counts, 1))
    starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])
    shingles = np.empty(int(starts[-1]), dtype=np.uint64)
    long = np.repeat(counts >= SHINGLE_WORDS, sizes)
    shingles[long] = hashed.ngrams(SHINGLE_WORDS)[0]
    brief = (counts > 0) & (counts < SHINGLE_WORDS)
    shingles[~long] = hashed.whole()[brief]
    return shingles, starts


def band_keys(shingles: UIntArray, starts: IntArray, workers: int | None = None) -> UIntArray:
    """Return [texts, bands]: a key for each band of a text's MinHash signature; 0 for an empty text."""
    draw = np.random.default_rng(_SEED)
    odd = draw.integers(0, 2**31, BANDS * ROWS, dtype=np.uint32) * np.uint32(2) + np.uint32(1)
    plus = draw.integers(0, 2**32, BANDS * ROWS, dtype=np.uint32)
    keys: NDArray[np.uint64] = np.zeros((len(starts) - 1, BANDS), dtype=np.uint64)

    def work(first: int, last: int) -> None:
        near_kernels.band_keys(shingles, starts[first : last + 1], odd, plus, BANDS, keys[first:last])

    # Signatures cost more than reading: 64 times the work of a byte.
    side_by_side(work, starts * 64, workers)
    return keys
