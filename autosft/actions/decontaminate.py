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
from numpy.typing import NDArray

from autosft.actions.words import UIntArray, WordHasher, member, whole_hash
from autosft.errors import SuiteError
from autosft.identity import fingerprint
from autosft.pool import Pool
from autosft.types import Row

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
        hashed = WordHasher().hash_texts(texts)
        lengths = np.diff(hashed.starts)
        short = [
            whole_hash(hashed.words[a : a + k])
            for a, k in zip(hashed.starts, lengths, strict=False)
            if 0 < k < n
        ]
        grams, owner = hashed.ngrams(n)
        numbers = np.cumsum(lengths >= n) - 1
        pairs = np.unique(np.stack([grams, numbers[owner].astype(np.uint64)]), axis=1)
        items = pairs[1].astype(np.int64)
        distinct = np.bincount(items, minlength=int((lengths >= n).sum()))
        needed = np.ceil(distinct * SHARE_OF_ITEM).astype(np.int64)
        return cls(name, n, pairs[0], items, needed, np.unique(np.array(short, dtype=np.uint64)))

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
        try:
            grams = np.array([int(gram, 16) for gram in data["grams"]], dtype=np.uint64)
            short = np.array([int(digest, 16) for digest in data["short"]], dtype=np.uint64)
            items = np.array(data["items"], dtype=np.int64)
            needed = np.array(data["needed"], dtype=np.int64)
            return cls(str(data["name"]), int(data["n"]), grams, items, needed, short)
        except (KeyError, TypeError, ValueError) as error:
            raise SuiteError(f"not the digests of a suite: {error}", where="benchmark index") from None


def scan(pool: Pool, indexes: Sequence[BenchmarkIndex]) -> dict[str, NDArray[np.bool_]]:
    """Find contaminated rows.

    Args:
        pool: All turns of all rows are read.
        indexes: Suites; those that are held out are joined under `held_out`.

    Returns:
        Suite name -> which rows hold text of it.
    """
    hits = {index.name: np.zeros(len(pool), dtype=bool) for index in indexes}
    hasher = WordHasher()
    for start in range(0, len(pool), _CHUNK_ROWS):
        rows = pool.rows()[start : start + _CHUNK_ROWS]
        turns = hasher.hash_texts(m.content for r in rows for m in r.messages)
        row_of = np.repeat(np.arange(len(rows)), [len(r.messages) for r in rows])
        short_keys, short_rows = _short_texts(rows, turns.words, turns.starts)
        grams = {n: turns.ngrams(n) for n in {index.n for index in indexes}}
        for index in indexes:
            values, owner = grams[index.n]
            found = hits[index.name][start : start + len(rows)]
            found |= _long_hits(index, values, row_of[owner], len(rows))
            at, _ = member(short_keys, index.short)
            found[short_rows[at]] = True
    return hits


def _long_hits(
    index: BenchmarkIndex, grams: UIntArray, row_of: NDArray[np.int64], n_rows: int
) -> NDArray[np.bool_]:
    """Rows that hold at least the needed number of distinct n-grams of one item."""
    found = np.zeros(n_rows, dtype=bool)
    if not len(index.grams):
        return found
    first = np.searchsorted(index.grams, grams, side="left")
    counts = np.searchsorted(index.grams, grams, side="right") - first
    hit = np.flatnonzero(counts)
    if not len(hit):
        return found
    # A gram may belong to several items: expand each hit to all of them.
    repeats = counts[hit]
    offsets = np.arange(repeats.sum()) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    entry = np.repeat(first[hit], repeats) + offsets
    pairs = np.unique(np.stack([np.repeat(row_of[hit], repeats), entry]), axis=1)
    row_item, shared = np.unique(np.stack([pairs[0], index.items[pairs[1]]]), axis=1, return_counts=True)
    found[row_item[0][shared >= index.needed[row_item[1]]]] = True
    return found


def _short_texts(
    rows: Sequence[Row], words: UIntArray, starts: NDArray[np.int64]
) -> tuple[UIntArray, NDArray[np.int64]]:
    """Digests of prompt turns and of whole rows, and the row of each."""
    keys: list[int] = []
    owners: list[int] = []
    turn = 0
    for number, row in enumerate(rows):
        first = starts[turn]
        for message in row.messages:
            if message.role != "assistant":
                keys.append(whole_hash(words[starts[turn] : starts[turn + 1]]))
                owners.append(number)
            turn += 1
        keys.append(whole_hash(words[first : starts[turn]]))
        owners.append(number)
    return np.array(keys, dtype=np.uint64), np.array(owners, dtype=np.int64)
