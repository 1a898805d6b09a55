"""Finding evaluation text in a pool (I5).

Rule for an evaluation text of n = 13 words or more: a row is contaminated when half of the text's distinct
n-grams occur in its turns, prompts and responses alike. Shorter texts have no n-grams: a row is contaminated
when one of its prompt turns, or the whole row, equals the text after normalisation.

Source: "GPT-3" (arXiv:2005.14165), appendix C, for 13-grams; the share of the item is this project's choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from autosft.engine.words import (
    SCHEME,
    HashedTexts,
    UIntArray,
    find_grams,
    gram_table,
    hash_column,
    hash_texts,
    member,
)
from autosft.errors import SuiteError
from autosft.identity import fingerprint
from autosft.pool import Pool

NGRAM_WORDS = 13
SHARE_OF_ITEM = 0.5
HELD_OUT = "held_out"
_CHUNK_ROWS = 16_384


@dataclass(frozen=True)
class BenchmarkIndex:
    """Digests of a suite's texts; holds no text.

    Attributes:
        name: Suite name, or `held_out`.
        n: Words of an n-gram.
        grams: Digests of the distinct n-grams of each long text, sorted by (gram, item).
        items: The long text each of `grams` belongs to.
        needed: For each long text, how many of its distinct n-grams make a row contaminated.
        short: Sorted digests of the texts with fewer than n words.
    """

    name: str
    n: int
    grams: UIntArray
    items: NDArray[np.int64]
    needed: NDArray[np.int64]
    short: UIntArray

    @classmethod
    def from_items(cls, name: str, texts: Iterable[str], n: int = NGRAM_WORDS) -> BenchmarkIndex:
        """Index a suite's prompts, references and tests; texts without a word are left out."""
        hashed = hash_texts(texts)
        lengths = np.diff(hashed.starts)
        short = hashed.whole()[(lengths > 0) & (lengths < n)]
        grams, owner = hashed.ngrams(n)
        numbers = np.cumsum(lengths >= n) - 1
        pairs = np.unique(np.stack([grams, numbers[owner].astype(np.uint64)]), axis=1)
        items = pairs[1].astype(np.int64)
        distinct = np.bincount(items, minlength=int((lengths >= n).sum()))
        needed = np.ceil(distinct * SHARE_OF_ITEM).astype(np.int64)
        return cls(name, n, pairs[0], items, needed, np.unique(short))

    @cached_property
    def distinct(self) -> UIntArray:
        """The distinct n-grams of all long texts, sorted."""
        return np.unique(self.grams)

    @property
    def held_out(self) -> bool:
        """Whether hits are reported as one total only."""
        return self.name == HELD_OUT

    def stricter(self, share: float) -> BenchmarkIndex:
        """Return the index with another share of a long text's n-grams making a row contaminated."""
        distinct = np.bincount(self.items, minlength=len(self.needed))
        needed = np.maximum(1, np.ceil(distinct * share)).astype(np.int64)
        return BenchmarkIndex(self.name, self.n, self.grams, self.items, needed, self.short)

    def hashed(self) -> BenchmarkIndex:
        """Return the index as a build may see a held-out suite: digests without the suite's name."""
        return BenchmarkIndex(HELD_OUT, self.n, self.grams, self.items, self.needed, self.short)

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of name, rule and digests."""
        return fingerprint(["13-gram half, short exact", self.to_json()])

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data; `from_json` reads it back."""
        return {
            "name": self.name,
            "scheme": SCHEME,
            "n": self.n,
            "grams": [f"{gram:016x}" for gram in self.grams.tolist()],
            "items": self.items.tolist(),
            "needed": self.needed.tolist(),
            "short": [f"{digest:016x}" for digest in self.short.tolist()],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> BenchmarkIndex:
        """Read what `to_json` wrote.

        Raises:
            SuiteError: The data is something else.
        """
        if data.get("scheme") != SCHEME:
            raise SuiteError(
                "these digests were made by another version of autosft",
                where="benchmark index",
                hint="seal the suite again, or use the version that made them",
            )
        try:
            grams = np.array([int(gram, 16) for gram in data["grams"]], dtype=np.uint64)
            short = np.array([int(digest, 16) for digest in data["short"]], dtype=np.uint64)
            items = np.array(data["items"], dtype=np.int64)
            needed = np.array(data["needed"], dtype=np.int64)
            return cls(str(data["name"]), int(data["n"]), grams, items, needed, short)
        except (KeyError, TypeError, ValueError) as error:
            raise SuiteError(f"not the digests of a suite: {error}", where="benchmark index") from None


def scan(
    pool: Pool, indexes: Sequence[BenchmarkIndex], workers: int | None = None
) -> dict[str, NDArray[np.bool_]]:
    """Find contaminated rows.

    Args:
        pool: All turns of all rows are read.
        indexes: Suites; those that are held out are joined under `held_out`.
        workers: Threads; one a core if None. The result does not depend on it.

    Returns:
        Suite name -> which rows hold text of it.
    """
    hits = {index.name: np.zeros(len(pool), dtype=bool) for index in indexes}
    tables = {index.fingerprint: gram_table(index.distinct) for index in indexes}
    for start in range(0, len(pool), _CHUNK_ROWS):
        part = pool.table.slice(start, _CHUNK_ROWS).column("messages").combine_chunks()
        part = part if isinstance(part, pa.Array) else pa.concat_arrays(part.chunks)
        turns = part.flatten()
        hashed = hash_column(turns.field("content"), workers)
        counts = np.diff(part.offsets.to_numpy())
        row_of = np.repeat(np.arange(len(counts)), counts)
        prompts = pc.not_equal(turns.field("role"), "assistant").to_numpy(zero_copy_only=False)
        short_keys, short_rows = _short_texts(hashed, counts, row_of, prompts)
        for index in indexes:
            found = hits[index.name][start : start + len(counts)]
            texts, grams = find_grams(hashed, index.n, tables[index.fingerprint])
            found |= _long_hits(index, grams, row_of[texts], len(counts))
            at, _ = member(short_keys, index.short)
            found[short_rows[at]] = True
    return hits


def _long_hits(
    index: BenchmarkIndex, grams: NDArray[np.int64], row_of: NDArray[np.int64], n_rows: int
) -> NDArray[np.bool_]:
    """Rows that hold at least the needed number of distinct n-grams of one item.

    Args:
        index: The suite.
        grams: Places in `index.distinct` of the n-grams that were found.
        row_of: The row of each.
        n_rows: Rows looked at.
    """
    found = np.zeros(n_rows, dtype=bool)
    if not len(grams):
        return found
    # A gram may belong to several items: expand each hit to all of them.
    first = np.searchsorted(index.grams, index.distinct[grams], side="left")
    repeats = np.searchsorted(index.grams, index.distinct[grams], side="right") - first
    offsets = np.arange(repeats.sum()) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    entry = np.repeat(first, repeats) + offsets
    pairs = np.unique(np.stack([np.repeat(row_of, repeats), entry]), axis=1)
    row_item, shared = np.unique(np.stack([pairs[0], index.items[pairs[1]]]), axis=1, return_counts=True)
    found[row_item[0][shared >= index.needed[row_item[1]]]] = True
    return found


def _short_texts(
    turns: HashedTexts, counts: NDArray[np.int64], row_of: NDArray[np.int64], prompts: NDArray[np.bool_]
) -> tuple[UIntArray, NDArray[np.int64]]:
    """Digests of prompt turns and of whole rows, and the row of each."""
    ends = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
    rows = HashedTexts(turns.words, turns.starts[ends])
    keys = np.concatenate([turns.whole()[prompts], rows.whole()])
    return keys, np.concatenate([row_of[prompts], np.arange(len(counts))])
