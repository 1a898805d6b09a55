# ruff: noqa: E501
"""Planted leaks fire, innocent rows stay."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autosft.actions import BenchmarkIndex, scan
from autosft.engine.normal import normal_words
from autosft.errors import SuiteError
from autosft.pool import Pool, new_row

LONG = (
    "Write a short story about a lonely lighthouse keeper who finds a message in a bottle, and make sure that the "
    "story has no more than two hundred words. Do not use the letter q anywhere in your whole answer."
)
SHORT = "Where is the fox? Avoid commas."
CHINESE = "请写一篇关于狐狸和乌鸦的短故事并且不要使用任何逗号"


def hits(turns: list[tuple[str, str]], *texts: str) -> bool:
    pool = Pool.from_rows(
        [new_row("s", [("user", "unrelated"), ("assistant", "words")]), new_row("s", turns)]
    )
    found = scan(pool, [BenchmarkIndex.from_items("dev", texts or (LONG, SHORT, CHINESE))])["dev"]
    assert not found[0]
    return bool(found[1])


WORDS = LONG.split()


@pytest.mark.parametrize(
    "text",
    [
        LONG,
        LONG.upper().replace(",", " ;").replace(".", "!!"),
        f"Please help me. {LONG} Thank you!",
        " ".join(WORDS[: int(len(WORDS) * 0.8)]),
        LONG.replace("short", "ｓｈｏｒｔ"),
        LONG.replace("lonely", "lone\u200bly"),
        LONG.replace(" ", "\u00a0\n"),
    ],
    ids=["verbatim", "case and marks", "embedded", "80 %", "full width", "zero width", "spaces"],
)
def test_long_texts_are_found_in_prompts_and_responses(text):
    assert hits([("user", text), ("assistant", "ok")])
    assert hits([("user", "ok"), ("assistant", text)])
    assert hits([("system", text), ("user", "a"), ("assistant", "ok"), ("user", "b"), ("assistant", "ok")])


@pytest.mark.parametrize(
    "text",
    [
        " ".join(WORDS[: int(len(WORDS) * 0.4)]),
        " ".join("zz" if i % 10 == 5 else w for i, w in enumerate(WORDS)),
        "make sure that the story has no more than two hundred words",
        " ".join(reversed(WORDS)),
    ],
    ids=["40 %", "every tenth word", "a shared phrase", "reversed"],
)
def test_other_texts_stay(text):
    assert not hits([("user", text), ("assistant", "ok")])


def test_half_of_the_ngrams_is_the_border():
    words = [f"w{i}" for i in range(32)]  # 20 n-grams
    for count, bad in ((21, False), (22, True)):  # 9 and 10 of them
        assert hits([("user", " ".join(words[:count])), ("assistant", "x")], " ".join(words)) is bad


def test_halves_in_two_turns_count_together():
    words = [f"w{i}" for i in range(40)]  # 28 n-grams
    text = " ".join(words)
    assert not hits([("user", " ".join(words[:22])), ("assistant", "x")], text)
    assert hits([("user", " ".join(words[:22])), ("assistant", " ".join(words[18:]))], text)


def test_short_texts_need_the_whole_prompt_turn():
    assert hits([("user", "where is the FOX avoid commas!"), ("assistant", "x")])
    assert hits([("user", "Where is the fox?"), ("assistant", "Avoid commas.")]), "the whole row is the text"
    assert hits([("user", "a"), ("assistant", "b"), ("user", SHORT), ("assistant", "x")])
    assert not hits([("user", f"{SHORT} Please."), ("assistant", "x")])
    assert not hits([("user", "x"), ("assistant", SHORT)]), "a short answer may say anything"


def test_scripts_without_spaces_have_ngrams():
    assert len(normal_words(CHINESE)) == len(CHINESE)
    assert hits([("user", f"你好!{CHINESE[:-3]}。"), ("assistant", "好")])
    assert not hits([("user", CHINESE[:8]), ("assistant", "好")])


def test_texts_without_words_match_nothing():
    assert not hits([("user", "!?"), ("assistant", "")], "...", "", " ")


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.text(alphabet="ab ,.é中", max_size=60), max_size=5), st.text(alphabet="ab ,.é中", max_size=90)
)
def test_agrees_with_a_plain_implementation(texts, turn):
    n = 3
    index = BenchmarkIndex.from_items("dev", texts, n)
    found = scan(Pool.from_rows([new_row("s", [("user", turn), ("assistant", "zz")])]), [index])["dev"][0]

    def grams(words: list[str]) -> set[tuple[str, ...]]:
        return {tuple(words[i : i + n]) for i in range(len(words) - n + 1)}

    words = normal_words(turn)
    expected = False
    for text in texts:
        item = normal_words(text)
        if len(item) >= n:
            expected |= len(grams(item) & grams(words)) * 2 >= len(grams(item))
        elif item:
            expected |= item in (words, [*words, "zz"])
    assert bool(found) is expected


def test_held_out_digests_name_nothing_and_find_the_same():
    dev = BenchmarkIndex.from_items("secret suite", [LONG, SHORT])
    sealed = BenchmarkIndex.from_json(dev.hashed().to_json())
    assert "secret" not in str(sealed.to_json()) and "lighthouse" not in str(sealed.to_json())
    assert sealed.fingerprint == dev.hashed().fingerprint != dev.fingerprint
    turns = [[("user", t), ("assistant", "x")] for t in (LONG, SHORT, "else")]
    pool = Pool.from_rows([new_row("s", t) for t in turns])
    found = scan(pool, [dev, sealed])
    assert found["held_out"].tolist() == found["secret suite"].tolist() == [True, True, False]


def test_two_sealed_suites_make_one_total():
    pool = Pool.from_rows([new_row("s", [("user", t), ("assistant", "x")]) for t in (LONG, SHORT)])
    sealed = [BenchmarkIndex.from_items(str(k), [t]).hashed() for k, t in enumerate((LONG, SHORT))]
    found = scan(pool, sealed)
    assert list(found) == ["held_out"] and np.all(found["held_out"])


@pytest.mark.parametrize(
    "data",
    [{}, {"name": "x"}, {"name": "x", "n": 13, "grams": ["zz"], "items": [], "needed": [], "short": []}],
)
def test_damaged_digests_are_named(data):
    with pytest.raises(SuiteError, match="digests"):
        BenchmarkIndex.from_json(data)
