"""Campaigns with known truth, for tests of the statistics.

An item passes under a seed where its ease, its leaf's shift under that seed and item-by-seed noise add up to
more than 0. With the default spreads 960 items in 16 leaves give a seed sd of about .012 on the campaign's
score, as the embedded lab does.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from autosft.evals import ClaimRule, ScoreTable, campaign_score, seed_noise_floor


@dataclass
class World:
    """Items with fixed ease; `measure` draws the scores of one recipe under fresh randomness."""

    rng: np.random.Generator
    leaves: int = 16
    per_leaf: int = 60
    leaf_sd: float = 0.125
    item_seed_sd: float = 0.3
    swing: float = 0.0
    ease_I: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.leaf_of = np.repeat(np.arange(self.leaves), self.per_leaf)
        level_L = self.rng.normal(0, 0.8, self.leaves)
        self.ease_I = level_L[self.leaf_of] + self.rng.normal(0, 1.0, self.leaves * self.per_leaf)
        self.items = tuple(f"i{k}" for k in range(len(self.ease_I)))
        self.names = tuple(f"l{k:02d}" for k in self.leaf_of)

    def measure(self, seeds: tuple[int, ...], gain: float = 0.0) -> ScoreTable:
        """Score one recipe under some seeds; `gain` shifts every item's ease."""
        shape = (len(seeds), self.leaves)
        shift_SL = self.rng.normal(0, self.leaf_sd, shape)
        # Some leaves are learned under some seeds only: a large jump, not a normal one.
        shift_SL[:, :2] += self.swing * self.rng.integers(0, 2, (len(seeds), 2))
        noise_SI = self.rng.normal(0, self.item_seed_sd, (len(seeds), len(self.ease_I)))
        passes = self.ease_I + gain + shift_SL[:, self.leaf_of] + noise_SI > 0
        return ScoreTable(passes.astype(float), self.items, self.names, seeds)


@dataclass
class Campaign:
    """What a simulated campaign did."""

    false_claims: int
    claims: int
    tests: int
    first_claim: int | None
    seed_sd: float


def run_campaign(
    world: World,
    gains: Sequence[float],
    *,
    n_seeds: int = 3,
    screen: bool = True,
    spreads: Sequence[float] | None = None,
) -> Campaign:
    """Run rounds as a campaign does: the highest mean becomes the incumbent and is measured afresh.

    Args:
        world: Where scores come from.
        gains: True gain of round 0, 1, ...; a claim is false where the gain is not above the claimed best's.
        n_seeds: Training seeds of a measurement.
        screen: Whether hopeless tests are left out.
        spreads: `leaf_sd` of each round's recipe, where recipes differ in how much a seed changes them.
    """
    rule, numbers = ClaimRule(planned=len(gains) - 1), count()

    def measure(number: int) -> ScoreTable:
        gain = gains[number]
        if spreads is not None:
            world.leaf_sd = spreads[number]
        return world.measure(tuple(next(numbers) for _ in range(n_seeds)), gain)

    claimed = measure(0)
    tables, incumbent, claimed_gain = [claimed], campaign_score(claimed), gains[0]
    tests = claims = false = 0
    first = None
    for number, gain in enumerate(gains[1:], start=1):
        chosen = measure(number)
        tables.append(chosen)
        if campaign_score(chosen) <= incumbent:
            continue
        incumbent = campaign_score(chosen)
        if screen and not rule.worth_testing(chosen, claimed, seed_noise_floor(tables), attempt=tests):
            continue
        fresh = measure(number)
        tables.append(fresh)
        noise = seed_noise_floor(tables)
        claim = rule.test(fresh, claimed, attempt=tests, selection_seeds=chosen.seeds, noise=noise)
        tests += 1
        if claim.granted:
            false += gain <= claimed_gain
            claims += 1
            claimed, claimed_gain, first = fresh, gain, first or number
    return Campaign(false, claims, tests, first, seed_noise_floor(tables).sd)


def main(n: int) -> None:
    """Print the tables of docs/statistics.md."""
    from scipy.stats import beta

    flat, ramp = [0.0] * 6, [0, 0.06, 0.12, 0.18, 0.18, 0.18]
    uneven = [0.125, 0.3, 0.05, 0.3, 0.05, 0.3]
    cases: list[tuple[str, list[float], dict[str, float], dict[str, object]]] = [
        ("A/A, lab-like", flat, {}, {}),
        ("A/A, every incumbent tested", flat, {}, {"screen": False}),
        ("A/A, two leaves learned by luck", flat, {"swing": 2.0}, {"screen": False}),
        ("A/A, seeds twice as noisy", flat, {"leaf_sd": 0.3}, {"screen": False}),
        ("A/A, recipes of unequal noise", flat, {}, {"screen": False, "spreads": uneven}),
        ("A/A, 5 seeds", flat, {}, {"screen": False, "n_seeds": 5}),
        ("gain from round 1 on: .10", [0, *[0.1] * 5], {}, {}),
        ("gain from round 1 on: .15", [0, *[0.15] * 5], {}, {}),
        ("gain growing to .18", ramp, {}, {}),
    ]
    for name, gains, world, how in cases:
        runs = [run_campaign(World(np.random.default_rng(k), **world), gains, **how) for k in range(n)]  # type: ignore[arg-type]
        fresh = World(np.random.default_rng(0), **world)  # type: ignore[arg-type]
        many = tuple(range(400))
        lift = campaign_score(fresh.measure(many, max(gains))) - campaign_score(fresh.measure(many))
        false, claimed = sum(r.false_claims > 0 for r in runs), sum(r.claims > 0 for r in runs)
        low = float(beta.ppf(0.025, false, n - false + 1)) if false else 0.0
        high = float(beta.ppf(0.975, false + 1, n - false))
        sd, tests = np.mean([r.seed_sd for r in runs]), np.mean([r.tests for r in runs])
        print(
            f"{name:34} sd {sd:.4f}  gain {lift:+.3f}  tests {tests:.2f}  "
            f"claims {claimed / n:.3f}  false {false / n:.4f} [{low:.4f}, {high:.4f}]"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
