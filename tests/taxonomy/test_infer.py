from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autosft.pool import Pool, new_row
from autosft.taxonomy import VERIFIERS, annotate, infer_requirements
from autosft.types import Requirement
from tests.taxonomy.measured_inference import measure, read_rows


@pytest.mark.parametrize(
    ("prompt", "key", "kwargs"),
    [
        ("Write a poem without any commas.", "punctuation:no_comma", {}),
        (
            "Answer in at most 150 words.",
            "length_constraints:number_words",
            {"num_words": 151, "relation": "less than"},
        ),
        (
            "Write an essay of 300+ words.",
            "length_constraints:number_words",
            {"num_words": 300, "relation": "at least"},
        ),
        (
            "Use the word river at least twice.",
            "keywords:frequency",
            {"keyword": "river", "frequency": 2, "relation": "at least"},
        ),
        (
            'Do not use the words "red" and "fox".',
            "keywords:forbidden_words",
            {"forbidden_words": ["red", "fox"]},
        ),
        ("Include the keywords red, fox and hen.", "keywords:existence", {"keywords": ["red", "fox", "hen"]}),
        (
            "Use at least 3 words in all capital letters.",
            "change_case:capital_word_frequency",
            {"capital_frequency": 3, "capital_relation": "at least"},
        ),
        (
            "Name a fox. First repeat the request word for word without change, then answer.",
            "combination:repeat_prompt",
            {"prompt_to_repeat": "Name a fox."},
        ),
        ("Respond only in the Korean language.", "language:response_language", {"language": "ko"}),
    ],
)
def test_stated_requirements_are_read(prompt: str, key: str, kwargs: dict[str, object]) -> None:
    assert infer_requirements(prompt) == (Requirement(key, kwargs),)


@pytest.mark.parametrize(
    "prompt",
    [
        "",
        "Tell me about the fox.",
        "What is a comma?",
        "I read 300 words.",
        "Use JavaScript.",
        "It took 5 times.",
    ],
)
def test_nothing_is_read_into_other_prompts(prompt: str) -> None:
    assert infer_requirements(prompt) == ()


@given(st.text(max_size=400))
@settings(max_examples=200, deadline=None)
def test_any_prompt_gives_requirements_that_can_be_decided(prompt: str) -> None:
    for requirement in infer_requirements(prompt):
        VERIFIERS[requirement.id].arguments(requirement.kwargs)


def test_long_prompts_take_no_time() -> None:
    for text in (
        "at least 3 words " * 3000,
        "repeat the " * 5000,
        '"' * 20000,
        "a " * 30000,
        "use the words " * 4000,
    ):
        start = time.process_time()
        infer_requirements(text)
        assert time.process_time() - start < 5, text[:20]


def test_precision_and_recall_on_ifeval(shared: Path) -> None:
    del shared
    found = measure(read_rows())["all"]
    assert found["stated"] == 834
    assert found["precision"] >= 0.98 and found["recall"] >= 0.82
    assert found["exact_precision"] >= 0.975 and found["exact_recall"] >= 0.81


def test_rows_without_requirements_get_them() -> None:
    own = new_row("s", [("user", "No commas, please: do not use commas."), ("assistant", "ok")])
    pool = Pool.from_rows([own, new_row("s", [("user", "Tell me."), ("assistant", "ok")])])
    assert [r.requirements for r in annotate(pool).rows()] == [(Requirement("punctuation:no_comma"),), ()]
