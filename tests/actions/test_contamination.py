"""Planted copies of evaluation items: no verbatim one survives; how many edited ones are found is known."""

from __future__ import annotations

import random

import numpy as np
import pytest

from autosft.actions.contamination import HELD_OUT, look_for, suite_index
from autosft.errors import ConfigError
from autosft.evals import Suite
from autosft.pool import Pool, new_row
from autosft.types import EvalItem, Message, Requirement, Row

WORDS = [
    f"{a}{b}"
    for a in ("ba", "ko", "mi", "tu", "re", "so", "la", "ne")
    for b in ("ran", "lit", "mo", "vex", "dor")
]
CODE = (
    "def mean_of_rows(rows):\n    total = []\n    for row in rows:\n"
    "        total.append(sum(row) / len(row))\n"
    "    return total"
)


def suite(n: int = 250) -> Suite:
    rng = random.Random(0)
    items = []
    for k in range(n):
        n_words = rng.choice([6, 20, 30, 45])
        text = " ".join(rng.choice(WORDS) for _ in range(n_words)).capitalize() + "."
        items.append(_item(f"t{k}", text))
    return Suite("planted", tuple(items))


def _item(key: str, text: str, reference: str | None = None) -> EvalItem:
    return EvalItem(
        key,
        "planted",
        (Message("user", text),),
        (Requirement("punctuation:no_comma"),),
        "x",
        reference=reference,
    )


def row(prompt: str, response: str = "ok") -> Row:
    return new_row("s", [("user", prompt), ("assistant", response)])


def edited(text: str, rng: random.Random) -> str:
    """Case, punctuation and one word in twelve or fewer changed."""
    words = text.replace(".", " !").upper().split()
    for at in rng.sample(range(len(words)), max(1, len(words) // 15)):
        words[at] = "OTHER"
    return " ".join(words)


def test_ten_thousand_planted_copies() -> None:
    rng, planted = random.Random(1), suite()
    texts = [item.messages[0].content for item in planted.items]
    verbatim = [
        row(rng.choice(["", "Please: " * (len(t.split()) >= 13)]) + t)
        for t in (rng.choice(texts) for _ in range(5000))
    ]
    light = [row(edited(rng.choice([t for t in texts if len(t.split()) >= 13]), rng)) for _ in range(5000)]
    innocent = [row(" ".join(rng.choice(WORDS) for _ in range(30))) for _ in range(2000)]
    pool = Pool.from_rows(verbatim + light + innocent)
    report = look_for([("f", pool)], [planted])
    clean = report.clean[0]
    assert not clean[:5000].any(), "verbatim survivors"
    recall = 1 - clean[5000:10000].mean()
    assert 0.2 < recall < 0.5, recall
    assert clean[10000:].all(), "innocent rows"
    strict = look_for([("f", pool)], [planted], rule="any13").clean[0]
    assert not strict[:5000].any() and (1 - strict[5000:10000].mean()) > recall
    loose = look_for([("f", pool)], [planted], rule="any8").clean[0]
    assert (1 - loose[5000:10000].mean()) > 0.95


def test_hits_name_rows_and_items_and_sealed_ones_nothing() -> None:
    planted = suite(20)
    at = next(k for k, item in enumerate(planted.items) if len(item.messages[0].content.split()) >= 20)
    text = planted.items[at].messages[0].content
    pool = Pool.from_rows([row("Tell me a joke."), row(f"Now: {text}")])
    report = look_for([("a.jsonl", pool)], [planted])
    assert report.by_suite == {"planted": 1} and report.hits[0].row == pool.ids[1]
    assert report.hits[0].items[0] == f"t{at}" and report.hits[0].file == "a.jsonl"
    sealed = look_for([("a.jsonl", pool)], [], sealed=[suite_index(planted).hashed()])
    assert sealed.by_suite == {HELD_OUT: 1} and not sealed.hits and sealed.contaminated == 1


def test_code_is_found_whatever_its_layout() -> None:
    suite_of_code = Suite("code", (_item("c", "Write the mean of each row of a table, please.", CODE),))
    dense = CODE.replace("    ", "\t").replace(" / ", "/").replace(" = ", "=").replace("(row)", "( row )")
    pool = Pool.from_rows(
        [row("Give me code.", f"```python\n{dense}\n```"), row("Hi.", "def f(x): return x")]
    )
    report = look_for([("f", pool)], [suite_of_code])
    assert np.array_equal(report.clean[0], [False, True]) and report.hits[0].items == ("c",)


def test_phrases_that_many_items_share_are_template_for_the_8_gram_rule() -> None:
    tail = "your answer must be in English and in all lower case letters"
    items = [_item(f"t{k}", f"{' '.join(random.Random(k).choices(WORDS, k=20))} {tail}") for k in range(5)]
    pool = Pool.from_rows([row(f"Name a fox, {tail}")])
    assert look_for([("f", pool)], [Suite("s", tuple(items))], rule="any8").contaminated == 0
    assert look_for([("f", pool)], [Suite("s", tuple(items[:2]))], rule="any8").contaminated == 1


def test_unknown_rules_are_refused() -> None:
    with pytest.raises(ConfigError, match="half, any13, any8"):
        suite_index(suite(2), "most")  # type: ignore[arg-type]
