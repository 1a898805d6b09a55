"""Compiled word hashing says what the definition in Python says, on any text, with any number of threads."""

from __future__ import annotations

import random
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autosft.engine.normal import normal_words
from autosft.engine.words import find_grams, gram_table, hash_column, hash_texts

PIECES = (
    "abc DEF .,;!? \t\n\x1c\0 ÀÉßñøœŁŀﬁﬃ…½™ΣσςΟΔΟΣ İıſ 你好世界 カナかな 한국어ㅎㅏㄴ"
    " ไทย ລາວ ខ្មែរ မြန်မာ е́Йй̆ é ａＡ！１\u3000\u00a0\u2028\u200b"
    "\u200d\u00ad\ufeff 👩‍👩‍👧😀 العربية שלום हिन्दी क्षि ﷺﷲ ÅΩ ǆǄ ﾊﾞﾞ ᄀ가각 ⑩㎏㍿①"
)


def check(texts: list[str]) -> None:
    """Words and hashes stand for each other one to one, and every text has the right words."""
    hashed = hash_texts(texts)
    by_word: dict[str, int] = {}
    by_hash: dict[int, str] = {}
    for number, text in enumerate(texts):
        words = normal_words(text)
        found = hashed.words[hashed.starts[number] : hashed.starts[number + 1]].tolist()
        assert len(found) == len(words), (text, words)
        for word, value in zip(words, found, strict=True):
            assert by_word.setdefault(word, value) == value, text
            assert by_hash.setdefault(value, word) == word, text


def test_every_character_alone_inside_a_word_and_before_an_accent() -> None:
    chars = [chr(code) for code in range(1, 0x20000) if not 0xD800 <= code < 0xE000]
    check([form for char in chars[::3] for form in (char, f"x{char}y", f"e{char}\u0301Z")])


def test_random_mixtures() -> None:
    rng = random.Random(0)
    check(["".join(rng.choice(PIECES) for _ in range(rng.choice((0, 1, 3, 10, 60)))) for _ in range(5_000)])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=8))
def test_any_texts(texts: list[str]) -> None:
    check(texts)


def test_long_rows_of_one_kind() -> None:
    check(["a" * 200_000, "好" * 50_000, "\u0301" * 20_000, "ﷺ " * 5_000, " " * 50_000, "Ａ，" * 20_000])


def test_the_number_of_threads_changes_nothing() -> None:
    rng = random.Random(1)
    texts = ["".join(rng.choice(PIECES) for _ in range(600)) for _ in range(4_000)]
    one, four = hash_texts(texts, workers=1), hash_texts(texts, workers=4)
    assert np.array_equal(one.words, four.words) and np.array_equal(one.starts, four.starts)
    column = pa.array(texts, pa.string())
    sliced = hash_column(column.slice(7, 50))
    assert sliced.words.tolist() == hash_texts(texts[7:57]).words.tolist()
    chunked = pa.chunked_array([column.slice(0, 10), column.slice(10, 5)])
    assert hash_column(chunked).words.tolist() == hash_texts(texts[:15]).words.tolist()


@pytest.mark.parametrize("n", [1, 3, 13])
def test_ngrams_are_found_where_python_finds_them(n: int) -> None:
    rng = random.Random(n)
    texts = [" ".join(rng.choice("abcdefg") for _ in range(rng.randrange(40))) for _ in range(300)]
    known = [" ".join(rng.choice("abcdefg") for _ in range(n)) for _ in range(20)]
    known += [" ".join(text.split()[-n:]) for text in texts[::9] if len(text.split()) >= n]
    known = list(dict.fromkeys(known))
    grams, _ = hash_texts(known).ngrams(n)
    distinct = np.unique(grams)
    texts_hit, places = find_grams(hash_texts(texts), n, gram_table(distinct))
    by_gram = dict(zip(grams.tolist(), known, strict=True))
    found = sorted(zip(texts_hit.tolist(), (by_gram[g] for g in distinct[places].tolist()), strict=True))
    wanted = sorted(
        (number, " ".join(words[k : k + n]))
        for number, text in enumerate(texts)
        for words in [text.split()]
        for k in range(len(words) - n + 1)
        if " ".join(words[k : k + n]) in known
    )
    assert found == wanted and wanted


def test_whole_texts_and_ngrams_do_not_reach_over_texts() -> None:
    hashed = hash_texts(["one two", "", "three", "one two", "two one"])
    whole = hashed.whole().tolist()
    assert whole[0] == whole[3] and len(set(whole)) == 4
    grams, owner = hashed.ngrams(2)
    assert owner.tolist() == [0, 3, 4] and grams[0] == grams[1] != grams[2]


def test_half_a_pair_counts_as_a_question_mark() -> None:
    assert hash_texts(["a\ud800b c"]).words.tolist() == hash_texts(["a?b c"]).words.tolist()
    assert sys.maxunicode == 0x10FFFF
