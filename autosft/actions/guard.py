"""What a build must fulfil before anything is trained on it (I2, I5, I7)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from autosft.actions.apply import check_lineage
from autosft.actions.decontaminate import BenchmarkIndex
from autosft.actions.plan import optimizer_steps
from autosft.actions.sampling import expected_copies
from autosft.errors import BudgetError, ContaminationError, FrozenSettingsError
from autosft.pool import Pool
from autosft.types import Recipe, TrainSettings

if TYPE_CHECKING:
    from autosft.actions.building import Build

MAX_PASSES = 10.0
FEW_TOKENS = 0.5


@dataclass(frozen=True)
class BuildGuard:
    """Facts of a campaign that every build is held against.

    Attributes:
        budget_tokens: B of every round.
        optimizer_steps: Steps of every round.
        unique_tokens: Round 0's unique tokens; a build below half of them is warned about.
        encoder: Fingerprint of tokenizer, template and sequence length.
        order: Base order of every recipe.
        benchmarks: Fingerprints of everything to decontaminate against.
        max_passes: Most passes over the pool, and most copies of one row.
    """

    budget_tokens: int
    optimizer_steps: int
    unique_tokens: int
    encoder: str
    order: Literal["file", "shuffle"]
    benchmarks: tuple[str, ...]
    max_passes: float = MAX_PASSES

    def check_inputs(
        self, recipe: Recipe, encoder: str, benchmarks: Sequence[BenchmarkIndex], train: TrainSettings
    ) -> None:
        """Check a recipe and its surroundings before its actions run.

        Raises:
            BudgetError: Another budget or number of steps than the campaign's.
            FrozenSettingsError: Another encoder or base order.
            ContaminationError: A benchmark of the campaign is missing.
        """
        where = f"recipe {recipe.fingerprint}"
        self._same_budget(
            recipe.budget_tokens, optimizer_steps(recipe.budget_tokens, train.batch_tokens), where
        )
        self._same_frozen(encoder, recipe.order, where)
        _same_benchmarks(self.benchmarks, (index.fingerprint for index in benchmarks), where)

    def check_passes(self, pool: Pool, tokens: NDArray[np.int64]) -> list[str]:
        """Check how often the budget passes over the pool and over single rows; return warnings.

        Raises:
            BudgetError: More than `max_passes`.
        """
        used = (pool.weights > 0) & (tokens > 0)
        unique = int(tokens[used].sum())
        expected = expected_copies(pool.weights, tokens, self.budget_tokens)
        hint = "add rows, keep more of them, or weight them more evenly"
        if self.budget_tokens > self.max_passes * unique:
            raise BudgetError(
                f"{self.budget_tokens} tokens pass {self.budget_tokens / unique:.1f} times over {unique} "
                f"unique tokens, at most {self.max_passes:g} are allowed",
                where="build",
                hint=hint,
            )
        most = int(expected.argmax())
        if expected[most] > self.max_passes * (1 + 1e-9):
            raise BudgetError(
                f"row {pool.ids[most]} (source {pool.sources[most]}, leaf {pool.leaves[most]}) would be "
                f"trained on {expected[most]:.1f} times, at most {self.max_passes:g} are allowed",
                where="build",
                hint=hint,
            )
        if unique < FEW_TOKENS * self.unique_tokens:
            return [f"{unique} unique tokens are under half of round 0's {self.unique_tokens}"]
        return []

    def check(self, build: Build) -> None:
        """Check a finished build against the campaign, its arrays included, whatever its record says.

        Raises:
            BudgetError: Tokens, steps or passes differ from the campaign's.
            FrozenSettingsError: Another encoder or base order.
            ContaminationError: Not decontaminated against every benchmark.
            LineageError: A made row lacks parent or verdicts.
        """
        where = f"build {build.artifact.fingerprint}"
        data = build.artifact.data
        self._same_frozen(data["encoder"], data["base_order"], where)
        require_clean(build, self.benchmarks)
        check_lineage(build.pool)
        self._same_budget(data["budget_tokens"], data["optimizer_steps"], where)
        self.check_passes(build.pool, build.lengths)
        slack = int(build.lengths.max())
        for seed in build.seeds:
            plan = build.plan(seed)
            trained = int(build.lengths[plan.rows].sum())
            if abs(self.budget_tokens - trained) > slack or plan.steps != self.optimizer_steps:
                raise BudgetError(
                    f"seed {seed} trains {trained} tokens in {plan.steps} steps, the campaign "
                    f"{self.budget_tokens} in {self.optimizer_steps}",
                    where=where,
                )

    def _same_budget(self, budget: int, steps: int, where: str) -> None:
        if budget != self.budget_tokens or steps != self.optimizer_steps:
            raise BudgetError(
                f"{budget} tokens in {steps} steps, the campaign trains {self.budget_tokens} in "
                f"{self.optimizer_steps}",
                where=where,
                hint="every round of a campaign has the same budget and steps",
            )

    def _same_frozen(self, encoder: str, order: str, where: str) -> None:
        if encoder != self.encoder:
            raise FrozenSettingsError(f"encoder {encoder}, the campaign's is {self.encoder}", where=where)
        if order != self.order:
            raise FrozenSettingsError(
                f"base order {order!r}, the campaign's is {self.order!r}",
                where=where,
                hint="use an order action",
            )


def require_clean(build: Build, benchmarks: Iterable[str | BenchmarkIndex]) -> None:
    """Check that a build was decontaminated against given benchmarks, and that its receipt is its own (I5).

    Args:
        build: A loaded build.
        benchmarks: Indexes or their fingerprints.

    Raises:
        ContaminationError: The receipt names another build, or lacks one of the benchmarks.
    """
    where = f"build {build.artifact.fingerprint}"
    if build.receipt.get("build") != build.artifact.fingerprint:
        raise ContaminationError(
            f"its receipt was written for build {build.receipt.get('build')!r}",
            where=where,
            hint="build the recipe anew",
        )
    wanted = (b if isinstance(b, str) else b.fingerprint for b in benchmarks)
    _same_benchmarks(wanted, build.receipt.get("benchmarks", ()), where)


def _same_benchmarks(wanted: Iterable[str], present: Iterable[str], where: str) -> None:
    missing = sorted(set(wanted) - set(present))
    if missing:
        raise ContaminationError(
            f"not decontaminated against {len(missing)} of the campaign's benchmarks ({', '.join(missing)})",
            where=where,
            hint="build with every suite of the campaign, held-out digests included",
        )
