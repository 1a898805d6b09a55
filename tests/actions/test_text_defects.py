"""Defects of text are mended where they are sure, and sound text stays as it is."""

from __future__ import annotations

import pytest

from autosft.actions.prune._arithmetic import wrong_sums
from autosft.actions.repair._defects import close_fence, cut_tail, drop_controls, order_roles, undo_mojibake
from autosft.pool import Pool, new_row
from autosft.types import Message, Requirement
from tests.actions.conftest import FLAWED, FRENCH


@pytest.mark.parametrize(
    ("change", "broken", "sound"),
    [
        (undo_mojibake, "The cafÃ© isnâ€™t far, 20Â°C.", "The café isn’t far, 20°C."),
        (undo_mojibake, "cafÃƒÂ©", "café"),
        (undo_mojibake, "Ã…ngstrÃ¶m, ÐŸÑ€Ð¸Ð²ÐµÑ‚", "Ångström, Привет"),
        (drop_controls, "a\x00b\x1b[0m\r\nc\ufeff\u202e", "ab[0m\nc"),
        (close_fence, "See:\n```py\nx = 1", "See:\n```py\nx = 1\n```"),
        (close_fence, "See this.\n```", "See this."),
        (cut_tail, "It is red. It lives in the barn and", "It is red."),
        (cut_tail, "One.\n\nIt is red! And then,", "One.\n\nIt is red!"),
    ],
)
def test_a_defect_is_mended_once(change, broken, sound):
    assert change(broken) == sound
    assert change(sound) == sound


@pytest.mark.parametrize("change", [undo_mojibake, drop_controls, close_fence, cut_tail])
@pytest.mark.parametrize(
    "text",
    [
        "“LE CAFÉ” ouvre. MAÇÃ” sim. Naïve – déjà vu…",
        "Tabs\tand\nlines 👩‍🌾 stay.",
        "```py\nx = 1\n```\nDone.",
        "Use `x` and ``` inline.",
        "- First. Then more\n- second. And so on",
        "My answer is yes",
        "1. Take it. Mix well",
        "",
    ],
)
def test_sound_text_stays(change, text):
    assert change(text) == text


@pytest.mark.parametrize(
    ("roles", "after"),
    [
        ("a u", "u a"),
        ("u s a", "s u a"),
        ("a u a", "u a"),
        ("u u a", "u a"),
        ("u a u", "u a"),
        ("u a u a", "u a u a"),
        ("u", "u"),
        ("u t a u", "u t a u"),
    ],
)
def test_turns_are_put_in_an_order_that_can_be_trained_on(roles, after):
    names = {"u": "user", "a": "assistant", "s": "system", "t": "tool"}
    turns = [Message(names[r], f"{r}{k}") for k, r in enumerate(roles.split())]
    assert " ".join(m.role[0] for m in order_roles(turns)) == after


def test_each_planted_defect_is_mended_and_says_so(act):
    after, diff = act(Pool.from_rows(FLAWED), "repair/text_defects")
    assert diff.rows_changed == 5 and diff.family == "repair"
    assert set(diff.reasons) == {
        "mended mojibake", "mended control characters", "mended open fence", "mended cut off",
        "mended role order",
    }  # fmt: skip
    made = [row for row in after.rows() if row.made_by]
    assert all(row.verdicts == {"check:text_defects": True} for row in made)


def test_a_row_that_fails_when_mended_stays_or_goes(act):
    need = [Requirement("startend:end_checker", {"end_phrase": "barn and"})]
    rows = [
        new_row(
            "s", [("user", "?"), ("assistant", "It is red. It lives in the barn and")], requirements=need
        ),
        new_row("s", [("user", "?"), ("assistant", "Fine.")]),
    ]
    after, diff = act(Pool.from_rows(rows), "repair/text_defects")
    assert diff.family is None and after.rows()[0] == Pool.from_rows(rows).rows()[0]
    after, diff = act(Pool.from_rows(rows), "repair/text_defects", drop_failures=True)
    assert diff.rows_removed == 1


def test_only_the_row_in_another_language_is_dropped(act):
    english = "The fox lives in the barn and likes to dig holes in the garden during the night."
    texts = [english, english.upper(), FRENCH, "Oui.", "12 34 56 " * 20]
    pool = Pool.from_rows(new_row("s", [("user", "Hi"), ("assistant", t)]) for t in texts)
    after, diff = act(pool, "prune/language")
    assert [row.response for row in after.rows()] == [t for t in texts if t != FRENCH]
    assert diff.reasons == {"language fr": 1}


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("12 * 3 = 35", True), ("12 * 3 = 36", False), ("5 + 3 * 2 = 11", False), ("10/3 = 3.33", False),
        ("<<48/2=25>>", True), ("x + 3 - 1 = 5", False),
        ("(3 + 4) * 2 = 14", False), ("20% * 50 = 10", False),
        ("4 * 4 = 8 * 2", False), ("- 3 + 4 = 8", True), ("1,000+5=105", True), ("3 - 5 = -2", False),
        ("2020-12-01 = 3", False), ("1 / 0 = 3", False), ("half, 1/2 = 12", False), ("2 x 3 = 7 cows", True),
    ],
)  # fmt: skip
def test_a_sum_is_wrong_only_where_that_is_certain(text, wrong):
    assert bool(wrong_sums(text)) == wrong


def test_repeats_are_capped_at_a_multiple_of_the_average(act):
    same = [new_row("s", [("user", f"Question {k}"), ("assistant", "Yes.")]) for k in range(8)]
    other = [new_row("s", [("user", f"Question {k}"), ("assistant", f"Answer {k}.")]) for k in range(8, 12)]
    after, diff = act(Pool.from_rows([*same, *other]), "mix/cap_repeats", of="response", most=1.5)
    total = {text: 0.0 for text in (row.response for row in after.rows())}
    for row in after.rows():
        total[row.response] += row.weight
    average = sum(total.values()) / len(total)
    assert total["Yes."] == pytest.approx(1.5 * average) and diff.rows_reweighted == 8
    assert len(after) == 12


def test_the_build_s_own_rule_is_looser_than_the_action(act, ctx):
    from tests.actions.conftest import LEAKED

    part = " ".join(LEAKED.split()[:15])
    rows = [new_row("s", [("user", f"{part}?"), ("assistant", "Yes.")]), new_row("s", [("user", "Hi"), ("assistant", "Ho")])]  # noqa: E501  # fmt: skip
    pool = Pool.from_rows(rows)
    assert act(pool, "prune/contamination", share=0.2)[1].reasons == {"holds text of dev": 1}
    assert act(pool, "prune/contamination", share=0.5)[1].family is None


def test_orders_place_rows_by_tokens(act):
    rows = [new_row("ab"[k % 2], [("user", f"Say {k}"), ("assistant", f"{k}.")]) for k in range(40)]
    pool = Pool.from_rows(rows)
    keys = act(pool, "order/fixed")[0].order_keys
    assert (keys[1:] > keys[:-1]).all() and keys[0] > 0 and keys[-1] < 1
    assert act(pool, "order/fixed", reverse=True)[0].order_keys == pytest.approx(1 - keys)
    mixed = act(pool, "order/interleave", by="source")[0].order_keys
    assert abs(mixed[::2].mean() - 0.5) < 0.05 and abs(mixed[1::2].mean() - 0.5) < 0.05
    blocks = act(pool, "order/blocks", by="source", sequence="name", last=["a"])[0].order_keys
    assert blocks[::2].min() > blocks[1::2].max()
