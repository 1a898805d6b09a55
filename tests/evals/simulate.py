"""Campaigns with known truth, for tests of the statistics.

An item passes under a seed where its ease, its leaf's shift under that seed and item-by-seed noise add up to more
than 0. With the default spreads 960 items in 16 leaves give a seed sd of about .012 on the campaign's score, as the
embedded lab does.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from autosft.evals.table import ScoreTable


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
