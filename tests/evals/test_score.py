from __future__ import annotations

import random
import time

import pytest

from autosft.errors import SuiteError, VerifierError
from autosft.evals import Output, score_outputs, summarise
from autosft.types import EvalItem, Message, Requirement


def an_item(key: str, *requirements: Requirement, leaf: str = "l") -> EvalItem:
    return EvalItem(key, "s", (Message("user", "What is 2+2?"),), requirements, leaf)


LOW, FOUR = Requirement("lab:lowercase"), Requirement("answer:number", {"answer": 4})


@pytest.mark.parametrize(
    ("text", "strict", "loose", "form", "content"),
    [
        ("it is 4", True, True, True, True),
        ("It is 4", False, False, False, True),
        ("it is 5", False, False, True, False),
        ("Sure!\nit is 4", False, True, False, True),
        ("It is 5", False, False, False, False),
        ("  \n", False, False, False, False),
    ],
)
def test_verdicts(text: str, strict: bool, loose: bool, form: bool, content: bool) -> None:
    score = score_outputs([an_item("a", LOW, FOUR)], [Output("a", text)])[0]
    assert (score.strict, score.loose, score.form, score.content) == (strict, loose, form, content)
    assert score.empty is not bool(text.strip())


def test_truncated_and_empty_are_counted_apart_and_judged_as_they_stand() -> None:
    items = [an_item("a", LOW), an_item("b", LOW), an_item("c", LOW)]
    scores = score_outputs(items, [Output("a", "x", True, 64), Output("b", ""), Output("c", "X", False, 3)])
    assert [s.truncated for s in scores] == [True, False, False] and [s.empty for s in scores] == [
        False,
        True,
        False,
    ]
    assert summarise(scores) == {
        "n": 3,
        "strict": pytest.approx(1 / 3),
        "loose": pytest.approx(1 / 3),
        "form": pytest.approx(1 / 3),
        "content": pytest.approx(2 / 3),
        "truncated": 1,
        "empty": 1,
        "flagged": 1,
        "flagged_passes": 0,
        "tokens": 67,
        "requirement_strict": pytest.approx(1 / 3),
        "requirement_loose": pytest.approx(1 / 3),
    }
    assert summarise([])["strict"] == 0.0


def test_repeated_requirement_ids_keep_their_place() -> None:
    two = an_item("a", *(Requirement("keywords:existence", {"keywords": [word]}) for word in ("red", "fox")))
    assert score_outputs([two], [Output("a", "a fox")])[0].strict_each == (False, True)


def test_scores_come_in_item_order_whatever_the_outputs_order() -> None:
    items = [an_item(f"i{k}", LOW, FOUR) for k in range(30)]
    outputs = [
        Output(f"i{k}", "it is 4" if k % 3 else "It is 4", sample=s) for k in range(30) for s in range(2)
    ]
    first = score_outputs(items, outputs)
    for seed in range(5):
        random.Random(seed).shuffle(outputs)
        assert score_outputs(items, outputs) == first
    assert [(s.item, s.sample) for s in first[:3]] == [("i0", 0), ("i0", 1), ("i1", 0)]


def test_items_and_outputs_must_belong_together() -> None:
    items = [an_item("a", LOW), an_item("b", LOW)]
    with pytest.raises(SuiteError, match=r"first b: 1 of 2 items have no output"):
        score_outputs(items, [Output("a", "x")])
    with pytest.raises(SuiteError, match="belongs to no item: 'c'"):
        score_outputs(items, [Output("c", "x")])
    with pytest.raises(SuiteError, match="sample 0 occurs twice"):
        score_outputs(items, [Output("a", "x"), Output("a", "y"), Output("b", "x")])
    with pytest.raises(VerifierError, match=r"item a.*lab:lowercase"):
        score_outputs([an_item("a", Requirement("lab:lowercas"))], [Output("a", "x")])


def test_a_thousand_items_take_less_than_a_second() -> None:
    wordy = "The fox is a small red animal, and it lives in the forest.\n* It likes to dig.\n" * 4
    requirements = [
        Requirement(
            "change_case:capital_word_frequency", {"capital_frequency": 3, "capital_relation": "at least"}
        ),
        Requirement("keywords:existence", {"keywords": ["wolf", "bear"]}),
        FOUR,
    ]
    items = [an_item(f"i{k}", *requirements) for k in range(1000)]
    start = time.process_time()
    scores = score_outputs(items, [Output(item.id, wordy) for item in items])
    assert time.process_time() - start < 1.0 and len(scores) == 1000
