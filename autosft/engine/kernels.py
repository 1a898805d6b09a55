"""Compiled loops of the engine; each says which Python it must equal (tests hold them to it).

Compiled on first use and cached beside this file, or in the user's cache folder where this one is read-only.
Unsigned 64-bit arithmetic wraps; every constant is given that type, since mixing it with signed numbers
makes floats.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from autosft.engine.compiled import compiled

U = np.uint64
_BASE = U(0xD6E8FEB86659FD93)  # of the n-grams' polynomial
_STEP = U(0x9E3779B97F4A7C15)
_ONE, _ZERO = U(1), U(0)
_ALONE, _UNKNOWN = -2, -1


@compiled
def mix(h: Any) -> Any:
    """`words.mix_bits` of one value."""
    h = (h ^ (h >> U(30))) * U(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> U(27))) * U(0x94D049BB133111EB)
    return h ^ (h >> U(31))


@compiled
def _code_at(data: Any, i: Any) -> Any:
    """Return (code point, bytes) of valid UTF-8 at a byte of 128 or more."""
    b = np.int64(data[i])
    if b >= 0xF0:
        high = (b & 0x07) << 18 | (np.int64(data[i + 1]) & 0x3F) << 12
        return high | (np.int64(data[i + 2]) & 0x3F) << 6 | (np.int64(data[i + 3]) & 0x3F), 4
    if b >= 0xE0:
        return (b & 0x0F) << 12 | (np.int64(data[i + 1]) & 0x3F) << 6 | (np.int64(data[i + 2]) & 0x3F), 3
    return (b & 0x1F) << 6 | (np.int64(data[i + 1]) & 0x3F), 2


@compiled
def met(data: Any, offsets: Any, starts: Any, seen: Any) -> Any:
    """Mark code points that the character table does not know; return whether there is one."""
    some = False
    i, end = offsets[0], offsets[-1]
    while i < end:
        if data[i] < 128:
            i += 1
            continue
        code, size = _code_at(data, i)
        if starts[code] == _UNKNOWN:
            seen[code] = True
            some = True
        i += size
    return some


@compiled
def words(
    data: Any,
    offsets: Any,
    char_starts: Any,
    char_lengths: Any,
    char_text: Any,
    whole_chars: Any,
    out: Any,
    starts: Any,
    alone: Any,
) -> Any:
    """Hash the words of texts: `normal.normal_words`, then the hash of each word's UTF-8.

    Returns the number of words, or -1 where `out` is too small. `whole_chars` false takes bytes of 128 and
    more as letters (text that is normal already). A text with a character that cannot be judged by itself is
    marked in `alone` and gets no words.
    """
    k, room = 0, len(out)
    for t in range(len(offsets) - 1):
        first = k
        h, n = _ZERO, _ZERO
        i, end = offsets[t], offsets[t + 1]
        while i < end:
            b = data[i]
            if b >= 128 and not whole_chars:
                h = (h ^ U(b)) * _STEP
                h ^= h >> U(47)
                n += _ONE
                i += 1
                continue
            code, size = np.int64(b), 1
            if b >= 128:
                code, size = _code_at(data, i)
            i += size
            start = char_starts[code]
            if start < 0:
                alone[t] = True
                k = first
                n = _ZERO
                break
            for j in range(start, start + char_lengths[code]):
                c = char_text[j]
                if c == 32:
                    if n:
                        if k >= room:
                            return -1
                        out[k] = mix(h + n)
                        k += 1
                        h, n = _ZERO, _ZERO
                else:
                    h = (h ^ U(c)) * _STEP
                    h ^= h >> U(47)
                    n += _ONE
        if n:
            if k >= room:
                return -1
            out[k] = mix(h + n)
            k += 1
        starts[t + 1] = k
    return k


@compiled
def _power(n: Any) -> Any:
    value = _ONE
    for _ in range(n):
        value *= _BASE
    return value


@compiled
def ngrams(words: Any, starts: Any, n: Any, out: Any) -> None:
    """Write the hash of every n-gram inside a text: the mixed polynomial of its words' hashes."""
    power = _power(n)
    k = 0
    for t in range(len(starts) - 1):
        h = _ZERO
        for j in range(starts[t], starts[t + 1]):
            h = h * _BASE + words[j]
            if j >= starts[t] + n:
                h -= words[j - n] * power
            if j >= starts[t] + n - 1:
                out[k] = mix(h)
                k += 1


@compiled
def whole(words: Any, starts: Any, out: Any) -> None:
    """Write one hash of each text's words in their order."""
    for t in range(len(starts) - 1):
        h = U(starts[t + 1] - starts[t])
        for j in range(starts[t], starts[t + 1]):
            h = mix(h * _STEP ^ words[j])
        out[t] = h


@compiled
def fill(grams: Any, bits: Any, keys: Any, places: Any) -> None:
    """Fill a bit filter and an open-addressed table with distinct n-grams."""
    filter_mask, mask = U(len(bits) * 64 - 1), U(len(keys) - 1)
    for i in range(len(grams)):
        h = grams[i]
        x = (h >> U(20)) & filter_mask
        bits[x >> U(6)] |= _ONE << (x & U(63))
        slot = h & mask
        while places[slot] >= 0:
            slot = (slot + _ONE) & mask
        keys[slot] = h
        places[slot] = i


@compiled
def find(
    words: Any, starts: Any, n: Any, bits: Any, keys: Any, places: Any, out_text: Any, out_place: Any
) -> Any:
    """Look every n-gram of the texts up; return how many are known (written as far as there is room)."""
    power = _power(n)
    filter_mask, mask = U(len(bits) * 64 - 1), U(len(keys) - 1)
    k, room = 0, len(out_text)
    for t in range(len(starts) - 1):
        h = _ZERO
        for j in range(starts[t], starts[t + 1]):
            h = h * _BASE + words[j]
            if j >= starts[t] + n:
                h -= words[j - n] * power
            if j < starts[t] + n - 1:
                continue
            g = mix(h)
            x = (g >> U(20)) & filter_mask
            if not (bits[x >> U(6)] >> (x & U(63))) & _ONE:
                continue
            slot = g & mask
            while places[slot] >= 0:
                if keys[slot] == g:
                    if k < room:
                        out_text[k] = t
                        out_place[k] = places[slot]
                    k += 1
                    break
                slot = (slot + _ONE) & mask
    return k


@compiled
def gather(ids: Any, marks: Any, offsets: Any, rows: Any, places: Any, out_ids: Any, out_marks: Any) -> None:
    """Copy rows of flat arrays to their places in others."""
    for i in range(len(rows)):
        start, end = offsets[rows[i]], offsets[rows[i] + 1]
        to = places[i]
        out_ids[to : to + end - start] = ids[start:end]
        out_marks[to : to + end - start] = marks[start:end]


@compiled
def count_marks(marks: Any, offsets: Any, out: Any) -> None:
    """Sum the marks of each row."""
    for i in range(len(out)):
        total = 0
        for j in range(offsets[i], offsets[i + 1]):
            total += marks[j]
        out[i] = total


@compiled
def hex_keys(data: Any, offsets: Any, out: Any) -> Any:
    """Read the first 16 characters of each text as a hexadecimal number; return the first that is none."""
    for t in range(len(offsets) - 1):
        if offsets[t + 1] - offsets[t] < 16:
            return t
        value = _ZERO
        for i in range(offsets[t], offsets[t] + 16):
            c = data[i]
            if 48 <= c <= 57:
                digit = U(c - 48)
            elif 97 <= c <= 102:
                digit = U(c - 87)
            else:
                return t
            value = value << U(4) | digit
        out[t] = value
    return -1
