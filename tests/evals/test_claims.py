"""A/A campaigns make false claims in at most 5 % of cases, and true gains are found."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from scipy.stats import beta

from autosft.errors import ConfigError, GuardError
from autosft.evals import (
    ClaimRule,
    ScoreTable,
    campaign_score,
    check_guard,
    first_seed_bias,
    remeasure_bias,
    seed_noise_floor,
)
from tests.evals.simulated import Campaign, World, run_campaign

SEEDS = (1, 2, 3)


def rate(
    n: int, gains: Sequence[float], *, screen: bool = True, **world: float
) -> tuple[float, float, list[Campaign]]:
    """Share of campaigns with a false claim, the upper end of its 95 % interval, and the campaigns."""
    worlds = (World(np.random.default_rng(1000 + k), **world) for k in range(n))  # type: ignore[arg-type]
    runs = [run_campaign(drawn, gains, screen=screen) for drawn in worlds]
    false = sum(run.false_claims > 0 for run in runs)
    return false / n, float(beta.ppf(0.975, false + 1, n - false)), runs


@pytest.mark.parametrize(
    "world",
    [{}, {"swing": 2.0}, {"leaf_sd": 0.3}, {"leaf_sd": 0.02, "item_seed_sd": 0.6}],
    ids=["lab-like", "leaves learned by luck", "noisy seeds", "noisy items"],
)
@pytest.mark.parametrize("screen", [True, False], ids=["screened", "every incumbent tested"])
def test_false_claims_in_aa_campaigns_are_at_most_5_percent(world: dict[str, float], screen: bool) -> None:
    found, upper, runs = rate(250, [0.0] * 6, screen=screen, **world)
    assert found <= 0.05 and upper < 0.09, (found, upper)
    if not world:
        assert np.mean([run.seed_sd for run in runs]) == pytest.approx(0.012, abs=0.001)
    assert screen or np.mean([run.tests for run in runs]) > 1, "claims were tested at all"


def test_claiming_the_highest_mean_without_a_fresh_measurement_would_be_wrong_often() -> None:
    """What the rule guards against: the maximum of five equal rounds beats round 0 too often."""
    wrong, n = 0, 250
    for trial in range(n):
        world = World(np.random.default_rng(trial))
        rounds = [world.measure(SEEDS) for _ in range(6)]
        best = max(rounds[1:], key=campaign_score)
        noise = seed_noise_floor(rounds)
        rule = ClaimRule(planned=1)
        wrong += rule.test(best, rounds[0], attempt=0, selection_seeds=(), noise=noise).granted
    assert wrong / n > 0.08


def test_true_gains_are_claimed() -> None:
    small = rate(100, [0, 0.06, 0.12, 0.18, 0.18, 0.18])[2]
    assert np.mean([run.claims > 0 for run in small]) > 0.9
    large = rate(60, [0, 0.4, 0.4, 0.4, 0.4, 0.4])[2]
    assert all(run.first_claim == 1 for run in large)


def test_selection_seeds_and_too_few_seeds_are_refused() -> None:
    world = World(np.random.default_rng(0))
    base, chosen = world.measure(SEEDS), world.measure(SEEDS)
    rule = ClaimRule(planned=5)
    with pytest.raises(GuardError, match=r"seeds \[3\] took part in choosing"):
        rule.test(chosen.with_seeds(SEEDS), base, attempt=0, selection_seeds=(3, 4))
    with pytest.raises(GuardError, match="2 fresh seeds"):
        rule.test(world.measure((8, 9)), base, attempt=0, selection_seeds=SEEDS)
    assert not rule.test(world.measure((7, 8, 9)), base, attempt=0, selection_seeds=SEEDS).granted


def test_the_budget_is_spent_evenly_and_then_nothing_is_granted() -> None:
    rule = ClaimRule(planned=4, alpha=0.04)
    assert [rule.level(k) for k in range(6)] == pytest.approx([0.01] * 4 + [0, 0])
    world = World(np.random.default_rng(0))
    base, better = world.measure(SEEDS), world.measure((7, 8, 9), gain=1.0)
    noise = seed_noise_floor([base, better])
    last = rule.test(better, base, attempt=3, selection_seeds=SEEDS, noise=noise)
    assert last.granted and last.alpha == 0.01 and last.comparison.ci_low > 0 and "claimed" in last.reason
    late = rule.test(better, base, attempt=4, selection_seeds=SEEDS, noise=noise)
    assert not late.granted and late.alpha == 0 and "used up" in late.reason
    assert rule.worth_testing(better, base, noise, attempt=3)
    assert not rule.worth_testing(better, base, noise, attempt=4)
    assert not rule.worth_testing(base, better, noise, attempt=0)
    for bad in ({"planned": 0}, {"planned": 1, "alpha": 0.0}, {"planned": 1, "fresh_seeds": 0}):
        with pytest.raises(ConfigError):
            ClaimRule(**bad)  # type: ignore[arg-type]


def test_guard_suites_have_a_margin() -> None:
    world = World(np.random.default_rng(3))
    before, same, worse = world.measure(SEEDS), world.measure(SEEDS), world.measure(SEEDS, gain=-0.5)
    noise = seed_noise_floor([before, same, worse])
    assert check_guard(before, same, 0.1, noise).status == "held"
    assert check_guard(before, worse, 0.05, noise).status == "fell"
    assert check_guard(before, same, 0.0, noise).status != "held"
    with pytest.raises(ConfigError, match="margin"):
        check_guard(before, same, -0.1)


def test_first_seed_bias_is_seen_where_recipes_were_kept_for_their_first_seed() -> None:
    world = World(np.random.default_rng(4))
    fair, kept = [], []
    for _ in range(40):
        several = [world.measure(SEEDS) for _ in range(4)]
        fair.append(several[0])
        kept.append(max(several, key=lambda t: t.seed_scores_S[0]))
    plain, chosen = first_seed_bias(fair), first_seed_bias(kept)
    assert abs(plain.bias) < 3 * plain.se and chosen.bias > 3 * chosen.se
    assert chosen.higher > 30 and chosen.n == 40
    fresh = remeasure_bias([(t, world.measure((7, 8, 9))) for t in kept])
    assert 0 < fresh.bias < chosen.bias
    empty = first_seed_bias([world.measure((1,))])
    assert empty.n == 0 and np.isnan(empty.bias)


def test_a_claim_is_about_the_same_items() -> None:
    world = World(np.random.default_rng(5))
    base = world.measure(SEEDS)
    other = ScoreTable(base.scores_SI, tuple(f"x{k}" for k in range(960)), base.leaves, (7, 8, 9))
    with pytest.raises(GuardError, match="different items"):
        ClaimRule(planned=1).test(other, base, attempt=0, selection_seeds=SEEDS)
