# ruff: noqa: E501
"""Copies that make the budget; order kept to the plan; packing inside steps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autosft.actions.plan import make_plan
from autosft.actions.sampling import draw_copies, expected_copies
from autosft.errors import BudgetError
from autosft.pool import Pool, new_row

lengths = st.lists(st.integers(1, 60), min_size=1, max_size=60)


@settings(max_examples=200, deadline=None)
@given(lengths, st.data())
def test_copies_make_the_budget_within_the_longest_row(tokens, data):
    tokens = np.array(tokens)
    weights = np.array(
        data.draw(st.lists(st.sampled_from([0, 0.5, 1, 3]), min_size=len(tokens), max_size=len(tokens)))
    )
    budget = data.draw(st.integers(1, 5 * int(tokens.sum())))
    if not weights.any():
        with pytest.raises(BudgetError):
            expected_copies(weights, tokens, budget)
        return
    expected = expected_copies(weights, tokens, budget)
    most = max(10, int(np.ceil(expected.max())))
    copies = draw_copies(expected, tokens, budget, most, np.random.default_rng(data.draw(st.integers(0, 99))))
    gap = budget - int((copies * tokens).sum())
    assert 0 <= gap < tokens.max()
    assert (copies[weights == 0] == 0).all() and (copies >= 0).all() and (copies <= most).all()


def test_copies_follow_weights_and_close_the_gap():
    rng = np.random.default_rng(0)
    tokens = rng.integers(5, 60, 500)
    weights = rng.choice([0.5, 1.0, 2.5], 500)
    budget = int(tokens.sum() * 2.3) + 7
    expected = expected_copies(weights, tokens, budget)
    strata = np.unique(weights, return_inverse=True)[1]
    drawn = np.array(
        [draw_copies(expected, tokens, budget, 10, np.random.default_rng(s), strata) for s in range(40)]
    )
    assert ((drawn * tokens).sum(axis=1) == budget).all(), "the gap is closed exactly where lengths allow it"
    off = np.abs(drawn - expected)
    assert (off > 1).mean() < 0.001, "each row gets its expectation rounded down or up"
    for weight in (0.5, 1.0, 2.5):
        mine = weights == weight
        share = (drawn[:, mine] * tokens[mine]).sum(axis=1) / budget
        wanted = (expected[mine] * tokens[mine]).sum() / budget
        assert np.abs(share - wanted).max() < 0.005
    assert not (drawn[0] == drawn[1]).all(), "another seed rounds other rows up"


def test_one_pass_with_equal_weights_is_every_row_once():
    tokens = np.arange(3, 40)
    copies = draw_copies(np.ones(37), tokens, int(tokens.sum()), 10, np.random.default_rng(0))
    assert (copies == 1).all()


def pool_of(n: int) -> Pool:
    return Pool.from_rows([new_row("s", [("user", str(i)), ("assistant", "x")]) for i in range(n)])


def plan_of(
    pool: Pool, tokens: np.ndarray, passes: float = 1.0, order: str = "file", seed: int = 0, batch: int = 64
):
    budget = int(tokens.sum() * passes)
    return make_plan(
        pool, tokens, budget_tokens=budget, batch_tokens=batch, sequence_tokens=50, order=order, max_passes=10,
        recipe_seed=0, seed=seed,
    )  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.integers(20, 200), st.sampled_from([0.4, 1.0, 2.7]), st.integers(0, 5))
def test_steps_are_equal_and_sequences_stay_inside_them(n, passes, seed):
    tokens = np.random.default_rng(n).integers(3, 45, n)
    pool = pool_of(n)
    plan = plan_of(pool, tokens, passes, seed=seed)
    budget = int(tokens.sum() * passes)
    assert plan.steps == -(-budget // 64)
    assert plan.step_starts[0] == 0 and plan.step_starts[-1] == len(plan.rows)
    done = np.cumsum(tokens[plan.rows])
    for k in range(plan.steps - 1):
        end = plan.step_starts[k + 1]
        assert done[end - 1] * plan.steps >= (k + 1) * budget > (done[end - 2] if end > 1 else 0) * plan.steps
    assert set(plan.step_starts[:-1]) <= set(plan.sequence_starts.tolist())
    assert (np.add.reduceat(tokens[plan.rows], plan.sequence_starts) <= 50).all()


def test_file_order_and_keys_reach_the_plan():
    n = 300
    pool, tokens = pool_of(n), np.full(n, 10)
    plan = plan_of(pool, tokens)
    rank = np.corrcoef(plan.rows, np.arange(len(plan.rows)))[0, 1]
    assert rank > 0.99 and not (np.diff(plan.rows) > 0).all(), "the file's order, blurred by the jitter"
    backwards = plan_of(pool.with_order(np.linspace(1, 0, n)), tokens)
    assert (np.diff(backwards.rows) < 0).all(), "a key without jitter is kept exactly"
    shuffled = plan_of(pool, tokens, order="shuffle")
    assert abs(np.corrcoef(shuffled.rows, np.arange(n))[0, 1]) < 0.2
    late = plan_of(pool.with_order(np.where(np.arange(n) < 30, 1.0, np.nan)), tokens, order="shuffle")
    assert (late.rows[-30:] < 30).mean() > 0.9


def test_a_position_is_a_fraction_of_the_budget_not_of_a_pass():
    n = 200
    pool = pool_of(n).with_order(np.where(np.arange(n) % 2, 0.25, 0.75), 0.5)
    tokens = np.full(n, 10)
    for passes in (0.5, 1.0, 4.0):
        rows = plan_of(pool, tokens, passes).rows
        half = len(rows) // 2
        assert (rows[:half] % 2 == 1).mean() > 0.95 and (rows[half:] % 2 == 0).mean() > 0.95


def test_plans_are_equal_by_seed_and_differ_between_seeds():
    pool, tokens = pool_of(100), np.random.default_rng(0).integers(5, 20, 100)
    assert plan_of(pool, tokens, 1.5, seed=3).sha == plan_of(pool, tokens, 1.5, seed=3).sha
    assert plan_of(pool, tokens, 1.5, seed=3).sha != plan_of(pool, tokens, 1.5, seed=4).sha


def test_a_row_longer_than_steps_is_refused():
    with pytest.raises(BudgetError, match=r"batch_tokens"):
        plan_of(pool_of(3), np.array([40, 40, 40]), batch=10)
