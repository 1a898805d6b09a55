"""Per-item results of a round as arrays: what all statistics are computed from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autosft.artifacts import ArtifactStore
from autosft.types import EvalItem, SeedReceipt


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """Strict passes of one round.

    Shapes: S seeds, I items.

    Attributes:
        seeds: Training seeds, in column order of `passed_SI`.
        leaves: Leaf of each item.
        suites: Suite of each item.
        passed_SI: Share of samples that pass strictly, in [0, 1].
    """

    seeds: tuple[int, ...]
    leaves: tuple[str, ...]
    suites: tuple[str, ...]
    passed_SI: NDArray[np.float64]

    def of_suites(self, names: Sequence[str]) -> ScoreTable:
        """Return the table restricted to some suites."""
        keep = [i for i, suite in enumerate(self.suites) if suite in names]
        return ScoreTable(
            self.seeds,
            tuple(self.leaves[i] for i in keep),
            tuple(self.suites[i] for i in keep),
            self.passed_SI[:, keep],
        )

    def of_seeds(self, seeds: Sequence[int]) -> ScoreTable:
        """Return the table restricted to some seeds."""
        keep = [i for i, seed in enumerate(self.seeds) if seed in seeds]
        return ScoreTable(tuple(self.seeds[i] for i in keep), self.leaves, self.suites, self.passed_SI[keep])

    def leaf_means(self) -> dict[str, float]:
        """Return leaf -> mean over its items and all seeds, in order of first appearance."""
        means = self.passed_SI.mean(axis=0)
        labels = np.array(self.leaves)
        return {leaf: float(means[labels == leaf].mean()) for leaf in dict.fromkeys(self.leaves)}


def load_scores(
    store: ArtifactStore, receipts: Sequence[SeedReceipt], items: Sequence[EvalItem]
) -> ScoreTable:
    """Read the per-item verdicts of a round's seeds, every sample of an item averaged."""
    import pyarrow.parquet as pq

    place = {(item.suite, item.id): i for i, item in enumerate(items)}
    by_id = {item.id: i for i, item in enumerate(items)}
    assert len(place) == len(by_id), "item ids are unique over a campaign's suites"
    passed_SI = np.zeros((len(receipts), len(items)))
    for s, receipt in enumerate(receipts):
        table = pq.read_table(store.load("score", receipt.scores).file("items.parquet"), columns=["item", "strict"])
        total, n = np.zeros(len(items)), np.zeros(len(items))
        index = np.array([by_id[name] for name in table.column("item").to_pylist()])
        np.add.at(total, index, table.column("strict").to_numpy(zero_copy_only=False).astype(float))
        np.add.at(n, index, 1.0)
        passed_SI[s] = total / np.maximum(n, 1)
    return ScoreTable(
        tuple(r.seed for r in receipts), tuple(i.leaf for i in items), tuple(i.suite for i in items), passed_SI
    )
