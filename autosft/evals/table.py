"""Scores of one checkpoint recipe as an array over training seeds and items."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autosft.errors import FrozenSettingsError, SuiteError
from autosft.evals.score import ItemScore

FloatArray = NDArray[np.float64]
METRICS = ("strict", "loose", "form", "content")


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Scores of one recipe: S training seeds by I items, in L leaves.

    Attributes:
        scores_SI: float64 [S, I] in [0, 1]: an item's score under a seed, the mean of its samples.
        items: Item ids, length I, unique.
        leaves: Each item's leaf, length I.
        seeds: Training seeds, length S, unique.
    """

    scores_SI: FloatArray
    items: tuple[str, ...]
    leaves: tuple[str, ...]
    seeds: tuple[int, ...]

    def __post_init__(self) -> None:
        """Check shapes and values."""
        scores = np.array(self.scores_SI, dtype=np.float64)
        scores.setflags(write=False)
        object.__setattr__(self, "scores_SI", scores)
        shape = (len(self.seeds), len(self.items))
        if scores.shape != shape or len(self.leaves) != len(self.items) or not scores.size:
            raise SuiteError(
                f"scores of shape {scores.shape} for {shape[0]} seeds and {shape[1]} items", where="scores"
            )
        if len(set(self.items)) != shape[1] or len(set(self.seeds)) != shape[0]:
            raise SuiteError("an item or a seed occurs twice", where="scores")
        if not (np.isfinite(scores).all() and scores.min() >= 0 and scores.max() <= 1):
            raise SuiteError("a score lies outside [0, 1]", where="scores")

    @classmethod
    def from_scores(cls, by_seed: Mapping[int, Sequence[ItemScore]], metric: str = "strict") -> ScoreTable:
        """Make a table of verdicts; several samples of an item are averaged.

        Args:
            by_seed: Training seed -> scores of all items.
            metric: One of `METRICS`.

        Raises:
            SuiteError: No seed, or an unknown metric.
            FrozenSettingsError: The seeds were not scored on the same items.
        """
        columns: dict[int, dict[str, list[Any]]] = {
            seed: {
                "item": [score.item for score in scores],
                "leaf": [score.leaf for score in scores],
                metric: [getattr(score, metric, None) for score in scores],
            }
            for seed, scores in by_seed.items()
        }
        return cls.from_columns(columns, metric)

    @classmethod
    def from_columns(
        cls, by_seed: Mapping[int, Mapping[str, Sequence[Any]]], metric: str = "strict"
    ) -> ScoreTable:
        """Make a table of stored columns `item`, `leaf` and the metric's; rows of one item are averaged.

        Raises:
            SuiteError: No seed, an unknown metric, or a missing column.
            FrozenSettingsError: The seeds were not scored on the same items.
        """
        if metric not in METRICS:
            raise SuiteError(
                f"unknown metric {metric!r}", where="scores", hint=f"one of {', '.join(METRICS)}"
            )
        if not by_seed:
            raise SuiteError("no seed was scored", where="scores")
        items: tuple[str, ...] = ()
        leaves: dict[str, str] = {}
        rows = []
        for seed, columns in by_seed.items():
            missing = [name for name in ("item", "leaf", metric) if name not in columns]
            if missing:
                raise SuiteError(f"column {missing[0]!r} is missing", where=f"scores of seed {seed}")
            found: dict[str, list[float]] = {}
            for item, leaf, value in zip(columns["item"], columns["leaf"], columns[metric], strict=True):
                found.setdefault(item, []).append(float(value))
                leaves.setdefault(item, leaf)
            items = items or tuple(found)
            if set(found) != set(items):
                raise FrozenSettingsError(
                    "seeds were scored on different items", where=f"scores of seed {seed}"
                )
            rows.append([float(np.mean(found[item])) for item in items])
        return cls(np.array(rows), items, tuple(leaves[item] for item in items), tuple(by_seed))

    @classmethod
    def join(cls, tables: Mapping[str, ScoreTable]) -> ScoreTable:
        """Put suites side by side: items and leaves become `suite/name`, so each suite's leaves count
        separately.

        Raises:
            FrozenSettingsError: The suites were not scored under the same seeds.
        """
        first = next(iter(tables.values()))
        if any(table.seeds != first.seeds for table in tables.values()):
            raise FrozenSettingsError("suites were scored under different seeds", where=", ".join(tables))
        return cls(
            np.concatenate([table.scores_SI for table in tables.values()], axis=1),
            tuple(f"{name}/{item}" for name, table in tables.items() for item in table.items),
            tuple(f"{name}/{leaf}" for name, table in tables.items() for leaf in table.leaves),
            first.seeds,
        )

    @cached_property
    def leaf_names(self) -> tuple[str, ...]:
        """Leaf names in order of first appearance, length L."""
        return tuple(dict.fromkeys(self.leaves))

    @cached_property
    def leaf_index_I(self) -> NDArray[np.int64]:
        """Position of each item's leaf in `leaf_names`: int64 [I]."""
        position = {leaf: index for index, leaf in enumerate(self.leaf_names)}
        return np.array([position[leaf] for leaf in self.leaves], dtype=np.int64)

    @cached_property
    def leaf_sizes_L(self) -> FloatArray:
        """Items in each leaf: float64 [L]."""
        return np.bincount(self.leaf_index_I, minlength=len(self.leaf_names)).astype(np.float64)

    @cached_property
    def leaf_scores_SL(self) -> FloatArray:
        """Mean over a leaf's items under each seed: float64 [S, L]."""
        return np.stack([self.leaf_means(row) for row in self.scores_SI])

    @cached_property
    def seed_scores_S(self) -> FloatArray:
        """The campaign's score under each seed, mean over leaves: float64 [S]."""
        return np.asarray(self.leaf_scores_SL.mean(axis=1))

    def leaf_means(self, values_I: FloatArray) -> FloatArray:
        """Return the mean of item values in each leaf: float64 [L]."""
        return np.asarray(self.leaf_sums(values_I) / self.leaf_sizes_L)

    def leaf_sums(self, values_I: FloatArray) -> FloatArray:
        """Return the sum of item values in each leaf: float64 [L]."""
        sums_L = np.bincount(self.leaf_index_I, weights=values_I, minlength=len(self.leaf_names))
        return np.asarray(sums_L, dtype=np.float64)

    def leaf(self, name: str) -> ScoreTable:
        """Return the table of one leaf's items.

        Raises:
            SuiteError: There is no such leaf.
        """
        if name not in self.leaf_names:
            raise SuiteError(f"no leaf {name!r}", where="scores", hint=f"has {', '.join(self.leaf_names)}")
        return self._of([index for index, leaf in enumerate(self.leaves) if leaf == name])

    def select(self, items: Iterable[str]) -> ScoreTable:
        """Return the table of some items, e.g. those of one suite or one phrasing, in this table's order.

        Raises:
            SuiteError: An item is not in the table, or none is given.
        """
        wanted = set(items)
        kept = [index for index, item in enumerate(self.items) if item in wanted]
        if len(kept) != len(wanted) or not kept:
            raise SuiteError(
                f"{len(wanted) - len(kept)} of {len(wanted)} items were not scored", where="scores"
            )
        return self._of(kept)

    def _of(self, kept: list[int]) -> ScoreTable:
        items, leaves = tuple(self.items[i] for i in kept), tuple(self.leaves[i] for i in kept)
        return ScoreTable(self.scores_SI[:, kept], items, leaves, self.seeds)

    def with_seeds(self, seeds: Sequence[int]) -> ScoreTable:
        """Return the table of some of the seeds, in the given order.

        Raises:
            SuiteError: A seed is not in the table, or none is given.
        """
        absent = [seed for seed in seeds if seed not in self.seeds]
        if absent or not seeds:
            raise SuiteError(f"no scores of seed {absent or 'any'}", where="scores", hint=f"has {self.seeds}")
        rows = [self.seeds.index(seed) for seed in seeds]
        return ScoreTable(self.scores_SI[rows], self.items, self.leaves, tuple(seeds))

    def aligned(self, other: ScoreTable) -> ScoreTable:
        """Return `other` with its items in this table's order.

        Raises:
            FrozenSettingsError: The two tables do not hold the same items in the same leaves.
        """
        if other.items == self.items and other.leaves == self.leaves:
            return other
        place = {item: index for index, item in enumerate(other.items)}
        if set(place) != set(self.items):
            n = len(set(place) ^ set(self.items))
            raise FrozenSettingsError(
                f"the two were scored on different items ({n} are in one only)",
                where="comparison",
                hint="suites are frozen for a campaign; compare checkpoints scored on the same suite",
            )
        order = [place[item] for item in self.items]
        moved = ScoreTable(
            other.scores_SI[:, order], self.items, tuple(other.leaves[i] for i in order), other.seeds
        )
        if moved.leaves != self.leaves:
            raise FrozenSettingsError("the two put an item into different leaves", where="comparison")
        return moved


def campaign_score(table: ScoreTable) -> float:
    """Return the campaign's score (I13): mean over leaves, then over training seeds."""
    return float(table.seed_scores_S.mean())
