"""Texts as sequences of hashed words, for n-grams over whole pools.

Normalisation: Unicode NFKC, lower case, punctuation, symbols and invisible characters removed; letters of
scripts written without spaces are words of their own.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import xxhash
from numpy.typing import NDArray

UIntArray = NDArray[np.uint64]
_BASE = np.uint64(0xD6E8FEB86659FD93)
# Han, kana and Hangul-free CJK blocks, Thai, Lao, Khmer, Myanmar: no spaces between words.
_UNSPACED = re.compile(
    "([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff])"
)
_ASCII_MARKS = str.maketrans("", "", string.punctuation)


class _Stripping(dict[int, str | None]):
    """Translation table that drops punctuation, symbols and format characters, decided on first sight."""

    def __missing__(self, code: int) -> str | None:
        char = chr(code)
        drops = (
            char in string.punctuation
            or unicodedata.category(char)[0] in "PS"
            or unicodedata.category(char) == "Cf"
        )
        self[code] = None if drops else char
        return self[code]


_UNICODE_MARKS = _Stripping()


def normal_words(text: str) -> list[str]:
    """Return the words of a text after normalisation."""
    if text.isascii():
        return text.lower().translate(_ASCII_MARKS).split()
    text = unicodedata.normalize("NFKC", text).lower()
    return _UNSPACED.sub(r" \1 ", text.translate(_UNICODE_MARKS)).split()


@dataclass(frozen=True, slots=True)
class HashedTexts:
    """Word hashes of several texts, one after another: text i is `words[starts[i]:starts[i+1]]`."""

    words: UIntArray
    starts: NDArray[np.int64]

    def ngrams(self, n: int) -> tuple[UIntArray, NDArray[np.int64]]:
        """Return the hash of every n-gram that lies inside one text, and the text it lies in."""
        total = len(self.words)
        if total < n:
            return np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)
        lengths = np.diff(self.starts)
        text_of = np.repeat(np.arange(len(lengths)), lengths)
        grams = np.zeros(total - n + 1, dtype=np.uint64)
        for k in range(n):
            grams = grams * _BASE + self.words[k : total - n + 1 + k]
        inside = text_of[: total - n + 1] == text_of[n - 1 :]
        return mix_bits(grams[inside]), text_of[: total - n + 1][inside]


class WordHasher:
    """Hashes words of many texts, remembering each distinct word."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def hash_texts(self, texts: Iterable[str]) -> HashedTexts:
        """Return the word hashes of texts, in order."""
        known, digest = self._known, xxhash.xxh3_64_intdigest
        hashes: list[int] = []
        starts = [0]
        for text in texts:
            for word in normal_words(text):
                value = known.get(word)
                if value is None:
                    value = known[word] = digest(word.encode("utf-8", "surrogatepass"))
                hashes.append(value)
            starts.append(len(hashes))
        return HashedTexts(np.array(hashes, dtype=np.uint64), np.array(starts, dtype=np.int64))


def whole_hash(words: UIntArray) -> int:
    """Return one hash of a sequence of word hashes."""
    return xxhash.xxh3_64_intdigest(words.astype("<u8").tobytes())


def mix_bits(values: UIntArray) -> UIntArray:
    """Spread the bits of 64-bit values (a bijection): a digest then shows nothing of how it was summed."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def member(values: UIntArray, table: UIntArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (positions in `values`, positions in sorted `table`) of the values that the table holds."""
    if not len(table) or not len(values):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    at = np.minimum(np.searchsorted(table, values), len(table) - 1)
    hit = np.flatnonzero(table[at] == values)
    return hit, at[hit]
