"""Dry runs of proposals on a real pool: what is touched, what is refused and with which pointer."""

from __future__ import annotations

import pytest

from autosft.actions import ActionContext
from autosft.lab.base import base_dir
from autosft.lab.pool import make_pool
from autosft.meta.decide import choose, choose_rival, touched_rows, try_proposal
from autosft.pool import RowEncoder
from autosft.subagents import Proposal, parse_reply
from autosft.taxonomy import Taxonomy
from autosft.types import Recipe


@pytest.fixture(scope="module")
def world():
    pool, _ = make_pool(300, 0)
    ctx = ActionContext(0, RowEncoder(base_dir(), 256), Taxonomy.load("lab"), ("lab",))
    return pool, ctx, Recipe(pool.fingerprint, (), 5000, "file", 0)


def _proposal(*kinds: str, analyst: str = "data", **params) -> Proposal:
    actions = [{"kind": kind, "params": params.get(kind.replace("/", "_"), {})} for kind in kinds]
    found = parse_reply({"analyst": analyst, "claim": "x", "actions": actions, "predicted": {"title": 0.17}})
    assert isinstance(found, Proposal)
    return found


def _try(world, proposal: Proposal, tried=None):
    pool, ctx, recipe = world
    return try_proposal(proposal, recipe, pool, ctx, leaves=["title", "json"], tried=tried or {})


def test_a_trial_changes_nothing_but_says_what_would_change(world):
    pool, *_ = world
    before = pool.fingerprint
    trial = _try(world, _proposal("prune/verifier"))
    assert pool.fingerprint == before and not trial.refusal
    assert trial.gain == pytest.approx(0.17 / 2)
    removed = sum(diff.rows_removed for diff in trial.diffs)
    assert removed == len({row for row, aspect in trial.touched if aspect == "content"}) > 0
    assert [call.kind for call in trial.recipe.actions] == ["prune/verifier"]


def test_a_repeated_effect_is_refused_with_a_pointer_whatever_it_is_called(world):
    first = _try(world, _proposal("prune/verifier"))
    again = _try(world, _proposal("prune/verifier", analyst="history"), tried={first.effect: 4})
    assert again.refusal == "equals round 4, which was measured"
    assert choose([again], ()).accepted == ()


def test_what_changes_nothing_or_cannot_be_applied_is_refused(world):
    pool, *_ = world
    one_leaf = {"order_shuffle": {"leaves": ["no such leaf"]}}
    assert (
        _try(world, _proposal("order/shuffle", **one_leaf)).refusal == "changes nothing on the parent's pool"
    )
    missing = _try(world, _proposal("mix/leaf_weights", mix_leaf_weights={"factors": {"no such leaf": 2.0}}))
    assert missing.refusal.startswith("cannot be applied") and "no such leaf" in missing.refusal
    assert touched_rows(pool, pool) == frozenset()


def test_order_and_content_of_the_same_rows_are_disjoint_aspects(world):
    prune, order = _try(world, _proposal("prune/verifier")), _try(world, _proposal("order/shuffle"))
    assert {aspect for _, aspect in order.touched} == {"order"}
    assert not prune.touched & order.touched
    assert choose([prune, order], ()).bundled


def test_a_rival_takes_plans_in_order_while_they_are_disjoint(world):
    edit, drop = _try(world, _proposal("repair/verifier_edit")), _try(world, _proposal("prune/verifier"))
    order = _try(world, _proposal("order/shuffle"))
    choice = choose_rival([edit, drop, order])
    assert [t.proposal.actions[0].kind for t in choice.accepted] == ["repair/verifier_edit", "order/shuffle"]
