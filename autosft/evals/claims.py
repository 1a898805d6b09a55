"""Claims: when a recipe may be called better than the best so far (I12), and guard suites (I13).

The *incumbent* is whatever has the highest mean, and selecting by a maximum makes that mean too high. A
*claim* therefore looks only at training seeds that had no part in the selection, and the campaign's claims
together spend one error budget.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from autosft.errors import ConfigError, GuardError
from autosft.evals.stats import Comparison, SeedNoise, compare
from autosft.evals.table import ScoreTable, campaign_score

GuardStatus = Literal["held", "unclear", "fell"]


@dataclass(frozen=True, slots=True)
class Claim:
    """The outcome of one test of a candidate best.

    Attributes:
        granted: The candidate is the new claimed best.
        attempt: Number of the test in its campaign, from 0.
        alpha: One-sided error spent on it.
        comparison: Candidate on fresh seeds against the claimed best; its interval covers 1 - 2 alpha.
        reason: One line for people.
    """

    granted: bool
    attempt: int
    alpha: float
    comparison: Comparison
    reason: str


@dataclass(frozen=True, slots=True)
class ClaimRule:
    """Alpha spending over a campaign's claims: each of `planned` tests gets `alpha / planned`.

    By the union bound the probability that a campaign without any true gain makes a claim is at most `alpha`,
    however the tests depend on one another. Levels are fixed in advance: a level chosen after seeing scores
    would break the bound.

    Attributes:
        planned: Most tests the campaign will make, usually its number of rounds; later ones are not granted.
        alpha: Probability of any false claim in a campaign.
        fresh_seeds: Least number of fresh training seeds a candidate is measured with.
    """

    planned: int
    alpha: float = 0.05
    fresh_seeds: int = 3

    def __post_init__(self) -> None:
        """Check the settings."""
        if self.planned < 1 or self.fresh_seeds < 1 or not 0 < self.alpha < 0.5:
            raise ConfigError(
                f"planned={self.planned}, fresh_seeds={self.fresh_seeds}, alpha={self.alpha}",
                where="claim rule",
                hint="planned and fresh_seeds are 1 or more, alpha lies between 0 and 0.5",
            )

    def level(self, attempt: int) -> float:
        """Return the one-sided error that test number `attempt` (from 0) may spend; 0 past the planned."""
        return self.alpha / self.planned if 0 <= attempt < self.planned else 0.0

    def worth_testing(
        self, candidate: ScoreTable, claimed: ScoreTable, noise: SeedNoise, *, attempt: int
    ) -> bool:
        """Return whether a candidate's selection scores are high enough for a test to be likely to pass.

        False saves the fresh training runs and the error budget; it decides nothing else. `noise` is the
        campaign's.
        """
        alpha = self.level(attempt)
        if alpha == 0.0:
            return False
        first = compare(claimed, candidate, noise, alpha=2 * alpha)
        return first.diff > 0 and (math.isnan(first.se) or first.ci_low > 0)

    def test(
        self,
        fresh: ScoreTable,
        claimed: ScoreTable,
        *,
        attempt: int,
        selection_seeds: Iterable[int],
        noise: SeedNoise | None = None,
    ) -> Claim:
        """Test a candidate best.

        Args:
            fresh: The candidate, measured with training seeds that took no part in choosing it.
            claimed: The claimed best so far: its own fresh measurement, or round 0's first one.
            attempt: Number of tests the campaign has made before.
            selection_seeds: Seeds of the candidate's earlier measurements.
            noise: Seed noise pooled over the campaign's rounds, this measurement among them.

        Raises:
            GuardError: A seed took part in the selection, or there are fewer than `fresh_seeds`.
            FrozenSettingsError: The two were scored on different items.
        """
        reused = sorted(set(fresh.seeds) & set(selection_seeds))
        if reused:
            raise GuardError(
                f"seeds {reused} took part in choosing the candidate",
                where="claim",
                hint="re-measure it with training seeds that were never used for it",
            )
        if len(fresh.seeds) < self.fresh_seeds:
            what = f"{len(fresh.seeds)} fresh seeds, the campaign's rule asks for {self.fresh_seeds}"
            raise GuardError(what, where="claim", hint="train the missing seeds")
        alpha = self.level(attempt)
        comparison = compare(claimed, fresh, noise, alpha=2 * alpha or 0.05)
        if alpha == 0.0:
            reason = f"not claimed: the {self.planned} planned tests are used up"
            return Claim(False, attempt, 0.0, comparison, reason)
        granted = comparison.verdict == "better"
        reason = (
            f"{'claimed' if granted else 'not claimed'}: {comparison.text()} (one-sided level {alpha:.3g})"
        )
        return Claim(granted, attempt, alpha, comparison, reason)


@dataclass(frozen=True, slots=True)
class GuardCheck:
    """Whether a guard suite stayed within its margin.

    Attributes:
        status: `fell` where the score is lower by more than the margin, `held` where the interval's lower end
        is
            within it, else `unclear`.
        margin: Allowed fall of the score.
        comparison: After against before.
    """

    status: GuardStatus
    margin: float
    comparison: Comparison


def check_guard(
    before: ScoreTable,
    after: ScoreTable,
    margin: float,
    noise: SeedNoise | None = None,
    *,
    alpha: float = 0.05,
) -> GuardCheck:
    """Check a guard suite: one that no action targets and that must not fall by more than `margin` (I13).

    Raises:
        ConfigError: The margin is negative.
        FrozenSettingsError: The two were scored on different items.
    """
    if not margin >= 0:
        raise ConfigError(f"a guard's margin is 0 or more, not {margin}", where="guard suite")
    comparison = compare(before, after, noise, alpha=alpha)
    status: GuardStatus = "unclear"
    if comparison.diff < -margin:
        status = "fell"
    elif comparison.ci_low >= -margin:
        status = "held"
    return GuardCheck(status, margin, comparison)


@dataclass(frozen=True, slots=True)
class SelectionBias:
    """How much too high the scores were that something was chosen by.

    Attributes:
        bias: Mean of (score chosen by) - (score under other seeds).
        se: Its standard error over recipes; nan for fewer than two.
        higher: Recipes whose chosen-by score was the higher one.
        n: Recipes.
    """

    bias: float
    se: float
    higher: int
    n: int


def first_seed_bias(tables: Sequence[ScoreTable]) -> SelectionBias:
    """Compare each recipe's first seed with the mean of its other seeds.

    Where recipes were kept because of their first seed, its score is too high on average; without selection
    the expected bias is 0.

    Args:
        tables: One a recipe, seeds in the order in which they were run; those with one seed are left out.
    """
    gaps = [float(t.seed_scores_S[0] - t.seed_scores_S[1:].mean()) for t in tables if len(t.seeds) > 1]
    return _bias(gaps)


def remeasure_bias(pairs: Sequence[tuple[ScoreTable, ScoreTable]]) -> SelectionBias:
    """Compare recipes' selection scores with their fresh ones: `(selection, fresh)` pairs."""
    return _bias([campaign_score(chosen) - campaign_score(fresh) for chosen, fresh in pairs])


def _bias(gaps: Sequence[float]) -> SelectionBias:
    n = len(gaps)
    se = float(np.std(gaps, ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    return SelectionBias(float(np.mean(gaps)) if n else math.nan, se, sum(gap > 0 for gap in gaps), n)
