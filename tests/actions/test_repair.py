# ruff: noqa: E501
"""Edits: minimal, verified, one for every requirement that has one; prompts reworded with the response intact."""

from __future__ import annotations

import pytest

from autosft.actions.repair._edits import EDITS
from autosft.actions.repair.verifier_edit import edited_text
from autosft.pool import Pool, new_row
from autosft.taxonomy import VERIFIERS, verify
from autosft.types import Requirement
from tests.taxonomy.conftest import language_data, shared  # noqa: F401

NEED_DATA = ("length_constraints:number_sentences", "format:title_case", "format:emoji")
TEXT = "Well, the fox is red and quick. It lives in the barn, and it likes to dig."
PROMPT = "Tell me about the fox."
# Requirement arguments, and the expected edit of TEXT where it is worth pinning.
CASES: list[tuple[str, dict, str | None]] = [
    ("keywords:forbidden_words", {"forbidden_words": ["well"]}, "It lives in the barn, and it likes to dig."),
    ("length_constraints:number_words", {"num_words": 10, "relation": "less than"}, "Well, the fox is red and quick."),
    ("length_constraints:number_sentences", {"num_sentences": 2, "relation": "less than"}, "Well, the fox is red and quick."),
    ("length_constraints:number_sentences", {"num_sentences": 3, "relation": "at least"}, None),
    ("format:title_case", {}, None),
    ("format:newline", {}, None),
    ("format:no_whitespace", {}, "".join(TEXT.split())),
    ("format:emoji", {}, None),
    ("format:thesis", {}, "<i>Well, the fox is red and quick.</i> It lives in the barn, and it likes to dig."),
    ("lab:exact_words", {"n": 7}, None),
    ("lab:exact_words", {"n": 6}, None),
    ("lab:exact_sentences", {"n": 1}, "Well, the fox is red and quick."),
    ("lab:exact_sentences", {"n": 3}, "Well, the fox is red and quick. It lives in the barn. It likes to dig."),
    ("keywords:existence", {"keywords": ["river", "fox"]}, f"{TEXT} Think of the river."),
    ("keywords:frequency", {"keyword": "fox", "frequency": 3, "relation": "at least"}, None),
    ("keywords:frequency", {"keyword": "it", "frequency": 2, "relation": "less than"}, None),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}, f"{TEXT} Ask [name] and [place]."),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, None),
    ("length_constraints:nth_paragraph_first_word", {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "so"}, None),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "* Well, the fox is red and quick.\n* It lives in the barn, and it likes to dig."),
    ("detectable_format:number_bullet_lists", {"num_bullets": 3}, None),
    ("detectable_format:multiple_sections", {"section_spliter": "Section", "num_sections": 2}, None),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 2}, None),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 5}, None),
    ("combination:two_responses", {}, None),
    ("detectable_format:title", {}, f"<<Fox>> {TEXT}"),
    ("lab:start_word", {"word": "river"}, f"River! {TEXT}"),
    ("detectable_content:postscript", {"postscript_marker": "P.S."}, f"{TEXT} P.S. Thank you for asking."),
    ("detectable_content:postscript", {"postscript_marker": "P.P.S"}, None),
    ("startend:end_checker", {"end_phrase": "that is all"}, f"{TEXT} That is all"),
    ("combination:repeat_prompt", {"prompt_to_repeat": PROMPT}, f"{PROMPT} {TEXT}"),
    ("punctuation:no_comma", {}, "Well the fox is red and quick. It lives in the barn and it likes to dig."),
    ("lab:lowercase", {}, TEXT.lower()),
    ("lab:uppercase", {}, TEXT.upper()),
    ("change_case:english_lowercase", {}, TEXT.lower()),
    ("change_case:english_capital", {}, TEXT.upper()),
    ("change_case:capital_word_frequency", {"capital_frequency": 2, "capital_relation": "at least"}, None),
    ("detectable_format:json_format", {}, '{"answer": "' + TEXT + '"}'),
    ("startend:quotation", {}, f'"{TEXT}"'),
]  # fmt: skip


def row(response: str, *requirements: Requirement, prompt: str = PROMPT):
    return new_row("s", [("user", prompt), ("assistant", response)], requirements=requirements)


@pytest.mark.parametrize(
    ("name", "kwargs", "expected"), CASES, ids=[f"{i}-{c[0]}" for i, c in enumerate(CASES)]
)
def test_each_edit_makes_its_requirement_pass(name, kwargs, expected, request):
    if name in NEED_DATA:
        request.getfixturevalue("language_data")
    requirement = Requirement(name, kwargs)
    if VERIFIERS[name].requires:
        pytest.importorskip(VERIFIERS[name].requires[0])
    assert not verify(requirement, PROMPT, TEXT)
    edited = edited_text(row(TEXT, requirement))
    assert edited is not None and verify(requirement, PROMPT, edited)
    if expected is not None:
        assert edited == expected


def test_every_edit_has_a_case_and_a_verifier():
    tried = {name for name, _, _ in CASES}
    tried |= {"detectable_format:constrained_response", "format:no_bullets_bullets", "format:line_indent"}
    assert set(EDITS) == tried
    assert set(EDITS) <= set(VERIFIERS)


def test_lines_are_indented_deeper_and_deeper():
    edited = edited_text(row("It is red.\nIt is quick.\nIt digs.", Requirement("format:line_indent")))
    assert edited == "It is red.\n It is quick.\n  It digs."


def test_sentences_become_bullets_only_where_there_are_enough(language_data):  # noqa: F811
    need = Requirement("format:no_bullets_bullets")
    edited = edited_text(row("It is red. It is quick. It digs. It sleeps.", need))
    assert edited == "It is red. It is quick.\n* It digs.\n* It sleeps."
    assert edited_text(row(TEXT, need)) is None


def test_a_yes_or_no_becomes_the_option_and_is_never_guessed():
    need = Requirement("detectable_format:constrained_response")
    assert edited_text(row("No, it is not.", need)) == "My answer is no."
    assert edited_text(row("The fox is red.", need)) is None


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Requirement("lab:lowercase"), Requirement("keywords:existence", {"keywords": ["river"]})),
        (
            Requirement("startend:quotation"),
            Requirement("startend:end_checker", {"end_phrase": "that is all"}),
        ),
        (
            Requirement("detectable_format:json_format"),
            Requirement("keywords:existence", {"keywords": ["river"]}),
        ),
        (
            Requirement("punctuation:no_comma"),
            Requirement("combination:repeat_prompt", {"prompt_to_repeat": PROMPT}),
        ),
        (Requirement("lab:uppercase"), Requirement("detectable_format:title")),
    ],
)
def test_two_requirements_are_met_together_in_either_order(first, second):
    for pair in ((first, second), (second, first)):
        edited = edited_text(row(TEXT, *pair))
        assert edited is not None and all(verify(r, PROMPT, edited) for r in pair)


def test_what_stands_in_an_envelope_is_edited_inside_it():
    need = (Requirement("startend:quotation"), Requirement("keywords:existence", {"keywords": ["river"]}))
    assert edited_text(row('"The fox is red."', *need)) == '"The fox is red. Think of the river."'
    need = (
        Requirement("detectable_format:json_format"),
        Requirement("keywords:existence", {"keywords": ["river"]}),
    )
    assert edited_text(row('{"answer": "Red."}', *need)) == '{"answer": "Red. Think of the river."}'


def test_contradicting_requirements_leave_the_row(act):
    need = (Requirement("lab:lowercase"), Requirement("lab:uppercase"))
    pool = Pool.from_rows([row("The fox.", *need), row("the fox", need[0])])
    after, diff = act(pool, "repair/verifier_edit")
    assert after.fingerprint == pool.fingerprint and diff.family is None
    dropped, diff = act(pool, "repair/verifier_edit", drop_failures=True)
    assert len(dropped) == 1 and diff.reasons == {"no edit for lab:lowercase": 1}


def test_an_edit_that_costs_the_fact_is_passed_over(ctx, act):
    need = [
        Requirement("lab:exact_words", {"n": 5}),
        Requirement("lab:fact", {"entity": "fox", "attribute": "color"}),
    ]
    from autosft.lab.world import FACTS

    color = FACTS["fox"]["color"]
    pool = Pool.from_rows(
        [row(f"Well, the {color} fox is {color}.", *need), row("The fox is not so.", *need)]
    )
    after, diff = act(pool, "repair/verifier_edit")
    assert (
        diff.rows_changed == 1 and color in after.row(0).response and all(ctx.passes(after.row(0)).values())
    )
    assert after.row(1) == pool.row(1), "a wrong fact is not a matter of form"


@pytest.mark.parametrize(
    "text", ["", " ", "\n", ",", '"', "*", "{", "<<>>", "\U0001f600", "a" * 5000, "é中", "\x00"]
)
def test_edits_survive_any_response(text):
    for name, kwargs, _ in CASES:
        if not VERIFIERS[name].requires:
            edited = edited_text(row(text, Requirement(name, kwargs)))
            assert edited is None or verify(Requirement(name, kwargs), PROMPT, edited)


def test_lab_rows_are_mended_and_stay_what_they_were(lab_pool, ctx, act):
    form_bad = [
        i
        for i, r in enumerate(lab_pool.rows())
        if not all(ctx.passes(r).values()) and ctx.passes(r).get("lab:fact", True)
    ]
    after, diff = act(lab_pool, "repair/verifier_edit")
    assert diff.family == "repair" and diff.rows_changed > 0.8 * len(form_bad)
    assert len(after) == len(lab_pool)
    for new, old in zip(after.rows(), lab_pool.rows(), strict=True):
        if new.id != old.id:
            assert new.parent == old.id and new.method == "edit" and new.made_by == "repair/verifier_edit"
            assert new.verdicts == ctx.passes(new) and all(new.verdicts.values())
            assert new.messages[:-1] == old.messages[:-1]
    assert act(after, "repair/verifier_edit")[1].family is None, "a second time there is nothing left to do"


def test_rewording_changes_prompts_only_and_keeps_what_must_be_said(lab_pool, ctx, act):
    for change in ("reword", "frame", "first", "vary"):
        after, diff = act(lab_pool, "repair/prompt_reword", change=change)
        assert diff.family == "repair" and diff.rows_changed > 20, change
        for new, old in zip(after.rows(), lab_pool.rows(), strict=True):
            if new.id != old.id:
                assert new.response == old.response and new.prompt != old.prompt
                assert all(ctx.passes(new).values()) and new.requirements == old.requirements
                for value in new.requirements[0].kwargs.values():
                    said = value if isinstance(value, list) else [value]
                    assert all(str(v).lower() in new.prompt.lower() for v in said), (change, new.prompt)
    half = act(lab_pool, "repair/prompt_reword", change="frame", frac=0.5)[1].rows_changed
    full = act(lab_pool, "repair/prompt_reword", change="frame")[1].rows_changed
    assert 0.3 * full < half < 0.7 * full


def test_braces_in_arguments_are_data(act):
    need = Requirement("startend:end_checker", {"end_phrase": "{0} {n} {"})
    pool = Pool.from_rows([row("It is red. {0} {n} {", need, prompt="What color? End with {0} {n} {")])
    after, diff = act(pool, "repair/prompt_reword", change="reword")
    assert diff.rows_changed == 1 and "{0} {n} {" in after.row(0).prompt
