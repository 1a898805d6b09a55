"""Choosing among proposals: dry runs, calibration, bundling of disjoint ones; no order of arrival matters."""

from __future__ import annotations

import itertools

import pytest

from autosft.meta.decide import Trial, calibration, choose
from autosft.subagents import Proposal, parse_reply
from autosft.subagents.evidence import PastRound
from autosft.types import Recipe


def _proposal(analyst: str, kind: str = "order/shuffle", delta: float = 0.1) -> Proposal:
    params = {"checks": "form"} if kind == "prune/verifier" else {}
    reply = {"analyst": analyst, "claim": "It helps.", "actions": [{"kind": kind, "params": params}]}
    found = parse_reply({**reply, "predicted": {"title": delta}})
    assert isinstance(found, Proposal)
    return found


def _trial(analyst: str, gain: float, rows: set[str], *, refusal: str = "", effect: str = "") -> Trial:
    recipe = Recipe("p", (), 100)
    touched = frozenset((row, "content") for row in rows)
    return Trial(_proposal(analyst, delta=gain), recipe, effect or analyst, (), touched, gain, refusal)


def _past(number: int, analyst: str, predicted: float, actual: float) -> PastRound:
    return PastRound(
        number, 0, ("order/shuffle",), ("order",), (analyst,), 0.5, actual, "open",
        {"title": predicted}, {"title": actual}, {"title": 0.5},
    )  # fmt: skip


def test_the_best_expected_gain_wins_and_disjoint_rows_are_bundled():
    choice = choose([_trial("a", 0.1, {"1"}), _trial("b", 0.3, {"2"}), _trial("c", 0.2, {"2", "3"})], ())
    assert [t.proposal.analyst for t in choice.accepted] == ["b", "a"]
    assert choice.bundled
    assert [(t.proposal.analyst, "same rows" in why) for t, why in choice.rejected] == [("c", True)]


def test_without_bundling_one_is_taken():
    choice = choose([_trial("a", 0.1, {"1"}), _trial("b", 0.3, {"2"})], (), bundle=False)
    assert [t.proposal.analyst for t in choice.accepted] == ["b"] and not choice.bundled


def test_refused_and_equal_proposals_never_run():
    twins = [_trial("a", 0.1, {"1"}, effect="same"), _trial("b", 0.1, {"1"}, effect="same")]
    choice = choose([*twins, _trial("c", 0.9, {"2"}, refusal="equals round 3, which was measured")], ())
    assert [t.proposal.analyst for t in choice.accepted] == ["a"]
    assert dict((t.proposal.analyst, why) for t, why in choice.rejected) == {
        "b": "the same rows as the proposal of a",
        "c": "equals round 3, which was measured",
    }
    assert choose([_trial("c", 0.9, {"2"}, refusal="no")], ()).accepted == ()


def test_the_order_of_arrival_never_matters():
    trials = [_trial(name, 0.2, {name}) for name in "abcd"]
    chosen = {
        tuple(t.proposal.analyst for t in choose(p, ()).accepted) for p in itertools.permutations(trials)
    }
    assert chosen == {("a", "b")}


def test_an_analyst_that_overpromises_is_believed_less():
    rounds = [_past(1, "a", 0.4, 0.0), _past(2, "a", 0.4, -0.1), _past(3, "b", 0.1, 0.1)]
    assert calibration(rounds, "a") == pytest.approx((2 + 2 * 0.2) / 4)
    assert calibration(rounds, "b") == pytest.approx(1.0)
    assert calibration(rounds, "c") == 1.0
    choice = choose([_trial("a", 0.15, {"1"}), _trial("b", 0.1, {"1"})], rounds)
    assert choice.accepted[0].proposal.analyst == "b"
