"""What counts as a word: the normalisation that decontamination and near-duplicates compare texts in.

Unicode NFKC, lower case, punctuation, symbols and invisible characters removed; letters of scripts written
without spaces are words of their own. `normal_words` is the definition; `CharTable` says the same character
by character, for compiled code, and which characters cannot be judged one by one.
"""

from __future__ import annotations

import functools
import re
import string
import sys
import threading
import unicodedata
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Han, kana and Hangul-free CJK blocks, Thai, Lao, Khmer, Myanmar: no spaces between words.
_UNSPACED = re.compile(
    "([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff])"
)
_ASCII_MARKS = str.maketrans("", "", string.punctuation)
#: Lower case of this letter depends on its place in the word.
_SIGMA = 0x3A3
UNKNOWN, ALONE = -1, -2


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


def _of_char(char: str) -> str:
    """Return what one character becomes, words parted by one space."""
    text = unicodedata.normalize("NFKC", char).lower()
    text = _UNSPACED.sub(r" \1 ", text.translate(_UNICODE_MARKS))
    return re.sub(r"\s", " ", text)


@functools.cache
def _joining() -> frozenset[int]:
    """Code points that NFKC may join with, or move past, what stands before them."""
    found = {_SIGMA, *range(0x1161, 0x1176), *range(0x11A8, 0x11C3)}  # the vowels and finals of Hangul
    for code in range(0xA0, sys.maxunicode + 1):
        char = chr(code)
        if unicodedata.combining(char):
            found.add(code)
        parts = unicodedata.decomposition(char)
        if parts and not parts.startswith("<"):
            found.update(int(part, 16) for part in parts.split()[1:])
    return frozenset(found)


class CharTable:
    """Normal forms of single characters as UTF-8, filled as characters are met.

    Attributes:
        starts: int32 [0x110000]: place in `text`; `UNKNOWN` before it was met, `ALONE` where the whole text
            must be normalised at once.
        lengths: uint8 [0x110000]: bytes.
        text: uint8: all forms, one after another; a space parts words.
    """

    def __init__(self) -> None:
        self.starts: NDArray[np.int32] = np.full(0x110000, UNKNOWN, dtype=np.int32)
        self.lengths: NDArray[np.uint8] = np.zeros(0x110000, dtype=np.uint8)
        self.text: NDArray[np.uint8] = np.zeros(0, dtype=np.uint8)
        self._lock = threading.Lock()
        self.learn(range(128))

    def learn(self, codes: Any) -> None:
        """Add code points; those that are known stay as they are."""
        with self._lock:
            added = bytearray()
            base = len(self.text)
            entries: list[tuple[int, int, int]] = []
            for code in codes:
                if self.starts[code] != UNKNOWN:
                    continue
                if self._alone(code):
                    entries.append((code, ALONE, 0))
                    continue
                form = _of_char(chr(code)).encode("utf-8")
                entries.append((code, base + len(added), len(form)))
                added += form
            # Readers in other threads look up `starts` first: the text must be there before its places are.
            self.text = np.concatenate([self.text, np.frombuffer(bytes(added), dtype=np.uint8)])
            for code, start, length in entries:
                self.lengths[code] = length
                self.starts[code] = start

    @staticmethod
    def _alone(code: int) -> bool:
        if 0xD800 <= code < 0xE000:
            return True
        joining = _joining() if code >= 0xA0 else frozenset()
        if code in joining:
            return True
        form = unicodedata.normalize("NFKC", chr(code))
        return any(ord(char) in joining for char in form) and code >= 0xA0
