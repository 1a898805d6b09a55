"""The repaired set: known faults are gone, everything else is judged as before, and it has its own name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autosft.evals import Output, score_outputs
from autosft.evals.repaired import repaired_items, repaired_scores, repairs
from autosft.taxonomy import VERIFIERS, check_requirement
from autosft.types import EvalItem, Message, Requirement

# id, arguments, response, official verdict, repaired verdict
FAULTS = [
    ("language:response_language", {"language": "de"}, "12345", True, False),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "always"},
        "It is red.\n\n\n\nAlways small.",
        False,
        True,
    ),
    ("words:words_position", {"keyword": "fox"}, "Oh, fox and the fox ran.", False, True),
    ("ratio:sentence_type", {}, "Red! Small!", True, False),
    ("format:line_indent", {}, "red", True, False),
    (
        "ratio:overlap",
        {"reference_text": "the fox x is red", "percentage": 100},
        "the fox is red",
        True,
        False,
    ),
]


@pytest.mark.parametrize(("key", "kwargs", "response", "official", "repaired"), FAULTS)
def test_known_faults_are_gone(
    language_data: None, key: str, kwargs: dict[str, object], response: str, official: bool, repaired: bool
) -> None:
    assert check_requirement(key, kwargs, "", response)[0] is official
    assert check_requirement(repairs()[key], kwargs, "", response)[0] is repaired


def test_each_stands_in_for_an_official_id_with_the_same_arguments() -> None:
    assert len(repairs()) >= 6
    for official, mine in repairs().items():
        assert VERIFIERS[official].parameters == VERIFIERS[mine].parameters, mine


def item(key: str, *requirements: Requirement, suite: str = "ifeval") -> EvalItem:
    return EvalItem(key, suite, (Message("user", "Say it."),), requirements, "leaf")


def test_other_items_keep_their_scores_and_the_contradiction_is_left_out(language_data: None) -> None:
    same = item("1", Requirement("punctuation:no_comma"))
    fault = item("2", Requirement("format:line_indent"))
    undecidable = item("2078", Requirement("punctuation:no_comma"))
    items = (same, fault, undecidable)
    outputs = [Output(i.id, "red", sample=k) for i in items for k in (0, 1)]
    official = score_outputs(items, outputs)
    mended = repaired_scores(items, outputs, official)
    assert mended is not None
    assert [(s.item, s.sample, s.strict) for s in mended] == [
        ("1", 0, True),
        ("1", 1, True),
        ("2", 0, False),
        ("2", 1, False),
    ]
    assert all(s.strict for s in official)
    assert mended[0] is official[0]


def test_arguments_follow_the_text_where_the_two_disagree() -> None:
    asked = Requirement("length_constraints:number_words", {"relation": "at least", "num_words": 336})
    found = repaired_items([item("337", asked)])[0].requirements[0]
    assert found.kwargs["num_words"] == 400
    other = replace(item("337", asked), suite="other")
    assert repaired_items([other]) == (other,)
    assert (
        repaired_scores([other], [Output("337", "x")], score_outputs([other], [Output("337", "x")])) is None
    )
