"""Contract over the whole listing: examples, arguments, any string, any order, any process."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autosft.errors import VerifierError
from autosft.taxonomy import VERIFIERS, check_requirement, compose, verify
from autosft.taxonomy.verifiers import loose_variants
from autosft.taxonomy.verifiers.pattern import keyword_pattern
from autosft.types import Requirement

IDS = list(VERIFIERS)
SPITEFUL = [
    "",
    " \n\t ",
    "12345",
    "😀" * 50,
    "\x00\x01\x7f",
    "\ud800 half a pair",
    "a\rb\r\nc\x0bd\x0ce\u2028f\u2029g\x85h",
    "[" * 20000,
    "[" * 5000 + "]" * 5000,
    "{" * 3000,
    "<<" * 20000,
    "*" * 20000,
    "* " * 10000,
    "\n" * 20000,
    " " * 20000 + "x",
    "section 1" * 3000,
    "p. " * 10000,
    "'" * 20000,
    "," * 20000,
    "1" * 6000,
    "-" * 20000,
    "1/0 1e999 .5/. $ #### \\boxed{",
    "answer is " * 3000,
    "ＦＵＬＬ ｗｉｄｔｈ İıǅß ΑΣ",
]


def have(verifier_id: str, request: pytest.FixtureRequest) -> None:
    for package in VERIFIERS[verifier_id].requires:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{verifier_id} needs {package}")
        if package != "langdetect":
            request.getfixturevalue("language_data")


def test_the_listing_holds_what_the_system_counts_on() -> None:
    public = {i for i in IDS if not i.startswith(("lab:", "answer:", "code:", "repaired:"))}
    assert len(public) == 83 and "format:sub-bullets" in public
    assert {"lab:lowercase", "lab:uppercase", "lab:exact_words", "lab:exact_sentences"} <= set(IDS)
    assert {"lab:start_word", "lab:fact", "answer:number", "answer:choice"} <= set(IDS)


@pytest.mark.parametrize("verifier_id", IDS)
def test_every_verifier_decides_its_own_examples(verifier_id: str, request: pytest.FixtureRequest) -> None:
    have(verifier_id, request)
    verifier, example = VERIFIERS[verifier_id], VERIFIERS[verifier_id].example
    assert verifier.summary.endswith(".") and len(verifier.summary) > 10
    assert check_requirement(verifier_id, example.kwargs, example.prompt, example.passes) == (True, True)
    assert check_requirement(verifier_id, example.kwargs, example.prompt, example.fails)[0] is False


@pytest.mark.parametrize("verifier_id", IDS)
def test_every_verifier_refuses_bad_arguments_and_says_what_it_takes(verifier_id: str) -> None:
    verifier, kwargs = VERIFIERS[verifier_id], dict(VERIFIERS[verifier_id].example.kwargs)
    with pytest.raises(VerifierError, match=r"unknown argument 'wrong'.*takes"):
        verifier.arguments({**kwargs, "wrong": 1})
    for parameter in verifier.parameters:
        with pytest.raises(VerifierError, match=parameter.name):
            verifier.arguments({**kwargs, parameter.name: {"neither": "number nor text"}})
        if parameter.required:
            with pytest.raises(VerifierError, match="missing"):
                verifier.arguments({**kwargs, parameter.name: None})


@pytest.mark.parametrize("verifier_id", IDS)
def test_every_verifier_has_a_verdict_for_spiteful_strings_in_reasonable_time(
    verifier_id: str, request: pytest.FixtureRequest
) -> None:
    have(verifier_id, request)
    kwargs = VERIFIERS[verifier_id].example.kwargs
    for text in SPITEFUL:
        start = time.process_time()
        strict, loose = check_requirement(verifier_id, kwargs, "Tell me.", text)
        assert loose or not strict
        assert text.strip() or not (strict or loose), "a blank response never passes"
        assert time.process_time() - start < 5, f"slow on {text[:20]!r}"


@given(text=st.text(st.characters(codec=None)), prompt=st.text(max_size=20))
@settings(max_examples=60, deadline=None)
def test_any_string_gets_a_verdict(text: str, prompt: str) -> None:
    for verifier_id in IDS:
        if not VERIFIERS[verifier_id].requires:
            verdict = check_requirement(verifier_id, VERIFIERS[verifier_id].example.kwargs, prompt, text)
            assert verdict in {(True, True), (False, True), (False, False)}


def test_unknown_ids_name_the_nearest_and_import_nothing() -> None:
    with pytest.raises(VerifierError, match="punctuation:no_comma"):
        check_requirement("punctuation:no_commas", {}, "", "x")
    with pytest.raises(VerifierError, match="detectable_format:json_format"):
        check_requirement("format:json_format", {}, "", "x")
    for hostile in ("os:system", "lab:__init__", "..:errors", "lab.fact", ""):
        with pytest.raises(VerifierError):
            check_requirement(hostile, {}, "", "x")
    assert "lab:__init__" not in VERIFIERS and len(set(IDS)) == len(IDS)


def test_nulls_are_dropped_and_zero_is_kept() -> None:
    padded = {"num_bullets": 0, "keyword": None, "n": None}
    assert check_requirement("detectable_format:number_bullet_lists", padded, "", "no bullets")[0]
    assert not check_requirement("detectable_format:number_bullet_lists", padded, "", "* one")[0]
    with pytest.raises(VerifierError, match="0 or more"):
        check_requirement("lab:exact_words", {"n": -1}, "", "x")
    with pytest.raises(VerifierError, match="whole number"):
        check_requirement("lab:exact_words", {"n": 2.5}, "", "x")
    assert check_requirement("lab:exact_words", {"n": 2.0}, "", "two words")[0]
    with pytest.raises(VerifierError, match="at least"):
        check_requirement("keywords:frequency", {"keyword": "a", "frequency": 1, "relation": "more"}, "", "x")


def test_loose_variants_are_the_eight_of_the_definition() -> None:
    assert loose_variants("*a*\nb*\nc ") == (
        "*a*\nb*\nc ",
        "b*\nc",
        "*a*\nb*",
        "b*",
        "a\nb\nc ",
        "b\nc",
        "a\nb",
        "b",
    )
    assert check_requirement("punctuation:no_comma", {}, "", "Sure, here:\nIt is red.") == (False, True)
    assert check_requirement("punctuation:no_comma", {}, "", "Sure, here\n") == (False, False), (
        "blank variants fail"
    )


def test_keywords_stay_patterns_unless_invalid_or_explosive() -> None:
    assert keyword_pattern("a.b") == "a.b"
    for keyword in ("c++", "(a+)+$", "(a|a)*", "a*a*a*b", "a?" * 30, "[", "x{9}{9}{9}"):
        start = time.process_time()
        check_requirement("keywords:existence", {"keywords": [keyword]}, "", "a" * 3000)
        check_requirement("keywords:forbidden_words", {"forbidden_words": [keyword]}, "", "a" * 3000)
        assert time.process_time() - start < 2, keyword
    assert check_requirement("keywords:existence", {"keywords": ["c++"]}, "", "I write C++.")[0]


@pytest.mark.parametrize(
    ("verifier_id", "kwargs", "text", "wanted"),
    [
        ("lab:lowercase", {}, "42!", False),
        ("lab:lowercase", {}, "ab1", True),
        ("lab:uppercase", {}, "ÄB. 1", True),
        ("lab:exact_words", {"n": 3}, "a  b\nc", True),
        ("lab:exact_sentences", {"n": 2}, 'He said "red." Then he left', True),
        ("lab:exact_sentences", {"n": 1}, "It is 3.5 m tall!!", True),
        ("lab:exact_sentences", {"n": 1}, "Yes. ...", True),
        ("lab:start_word", {"word": "river"}, '"River," he said.', True),
        ("lab:start_word", {"word": "river"}, "Rivers run.", False),
        (
            "keywords:letter_frequency",
            {"letter": "#", "let_frequency": 2, "let_relation": "at least"},
            "# #",
            True,
        ),
        ("answer:number", {"answer": "1,200"}, "It costs $1,200.", True),
        ("answer:number", {"answer": 0.75}, "So the answer is 3/4 of it, not 2.", True),
        ("answer:number", {"answer": 5}, "5 apples and 7 pears", False),
        ("answer:number", {"answer": -2}, "x = -2.", True),
        ("answer:number", {"answer": 18}, "9 * 2 = 18\n#### 18", True),
        ("answer:number", {"answer": 1}, "none", False),
        ("answer:number", {"answer": 3.14, "tolerance": 0.01}, "about 3.141", True),
        ("answer:choice", {"answer": "c"}, "(A) is wrong, so (C)", True),
        ("answer:choice", {"answer": "B"}, "The answer is: B", True),
        ("answer:choice", {"answer": "A"}, "A fox is red.", False),
        ("answer:choice", {"answer": "D"}, "D", True),
    ],
)
def test_own_verifiers_at_the_edges(
    verifier_id: str, kwargs: dict[str, object], text: str, wanted: bool
) -> None:
    assert check_requirement(verifier_id, kwargs, "", text)[0] is wanted


def test_bad_answers_and_facts_are_refused_by_name() -> None:
    with pytest.raises(VerifierError, match="not a number"):
        check_requirement("answer:number", {"answer": "many"}, "", "3")
    with pytest.raises(VerifierError, match="one character"):
        kwargs = {"letter": "ab", "let_frequency": 1, "let_relation": "at least"}
        check_requirement("keywords:letter_frequency", kwargs, "", "x")
    with pytest.raises(VerifierError, match="unicorn"):
        check_requirement("lab:fact", {"entity": "unicorn", "attribute": "color"}, "", "red")


def test_compositions() -> None:
    low, short = Requirement("lab:lowercase"), Requirement("lab:exact_words", {"n": 2})
    comma = Requirement("compose:not", {"of": [{"id": "punctuation:no_comma"}]})
    cases = {
        "all": ("red fox", "red fox runs"),
        "any": ("Red fox", "Red Fox Runs"),
    }
    for operator, (good, bad) in cases.items():
        made = compose(operator, [low, short])  # type: ignore[arg-type]
        assert verify(made, "", good) and not verify(made, "", bad)
    assert verify(comma, "", "a, b") and not verify(comma, "", "a b") and not verify(comma, "", "  ")
    two = compose("count", [low, short, comma], at_least=1, at_most=2)
    assert (
        verify(two, "", "red fox") and not verify(two, "", "red, fox") and not verify(two, "", "Red fox runs")
    )
    assert check_requirement(comma.id, comma.kwargs, "", "x\na, b") == (True, True)
    assert check_requirement("compose:all", compose("all", [low]).kwargs, "", "SURE\nred") == (False, True)


@pytest.mark.parametrize(
    ("requirement_id", "kwargs", "message"),
    [
        ("compose:xor", {"of": [{"id": "lab:lowercase"}]}, "unknown composition"),
        ("compose:all", {}, "'of' must list"),
        ("compose:all", {"of": "lab:lowercase"}, "'of' must list"),
        ("compose:all", {"of": [{"id": "lab:lowercas"}]}, "lab:lowercase"),
        ("compose:all", {"of": [{"name": "x"}]}, "not a requirement"),
        ("compose:not", {"of": [{"id": "lab:lowercase"}, {"id": "lab:uppercase"}]}, "takes one part"),
        ("compose:count", {"of": [{"id": "lab:lowercase"}]}, "at_least or at_most"),
        ("compose:count", {"of": [{"id": "lab:lowercase"}], "at_least": 2}, "no number of 1"),
        ("compose:any", {"of": [{"id": "lab:lowercase"}], "at_least": 1}, "unknown argument"),
    ],
)
def test_broken_compositions_are_refused(
    requirement_id: str, kwargs: dict[str, object], message: str
) -> None:
    with pytest.raises(VerifierError, match=message):
        check_requirement(requirement_id, kwargs, "", "x")


def test_endless_nesting_is_refused() -> None:
    part: dict[str, object] = {"id": "lab:lowercase"}
    for _ in range(12):
        part = {"id": "compose:all", "kwargs": {"of": [part]}}
    with pytest.raises(VerifierError, match="nested deeper"):
        check_requirement("compose:all", {"of": [part]}, "", "x")


RESCORE = """
import json, random, sys
from autosft.taxonomy import VERIFIERS, check_requirement
texts = json.loads(sys.argv[1])
order = list(range(len(texts)))
random.Random(int(sys.argv[2])).shuffle(order)
found = {}
for index in order:
    for key in sorted(VERIFIERS, key=lambda k: hash(k)):
        found[f"{key} {index}"] = check_requirement(key, VERIFIERS[key].example.kwargs, "p", texts[index])
print(json.dumps(found, sort_keys=True))
"""


def test_rescoring_is_byte_identical_in_any_order_process_and_locale(
    request: pytest.FixtureRequest,
) -> None:
    for verifier_id in IDS:
        have(verifier_id, request)
    texts = [
        "Der Fuchs",
        "le renard est",
        "fox 3",
        "El zorro rojo",
        "x",
        "HELLO THERE",
        "ok, ok",
        "oui si ja",
    ]
    seen = set()
    for seed in range(3):
        environment = {**os.environ, "PYTHONHASHSEED": str(seed), "LC_ALL": ["C", "C.UTF-8", "POSIX"][seed]}
        command = [sys.executable, "-c", RESCORE, json.dumps(texts), str(seed)]
        root = Path(__file__).resolve().parents[2]
        seen.add(subprocess.run(command, env=environment, cwd=root, check=True, capture_output=True).stdout)
    assert len(seen) == 1 and b"true" in next(iter(seen))


def test_verifiers_import_nothing_heavy() -> None:
    code = (
        "import sys; from autosft.taxonomy import VERIFIERS, Taxonomy; [VERIFIERS[i] for i in VERIFIERS]; "
        "heavy = ('torch', 'nltk', 'transformers', 'datasets', 'scipy', 'langdetect'); "
        "print([m for m in heavy if m in sys.modules])"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
