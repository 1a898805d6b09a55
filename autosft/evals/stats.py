"""Intervals and comparisons over training seeds and items both. The derivations are in docs/statistics.md.

Legend of array suffixes: S training seeds, I items, L leaves.

Source: two-way crossed random effects, variance of a mean as MS(seed) + MS(item) - MS(seed x item); degrees
of freedom by Satterthwaite (Biometrics Bulletin 2, 1946); family-wise error over leaves by Holm (Scand. J.
Statist. 6, 1979).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from autosft.errors import ConfigError
from autosft.evals.table import FloatArray, ScoreTable, campaign_score

Verdict = Literal["better", "worse", "not distinguishable"]
POWER = 0.8


@dataclass(frozen=True, slots=True)
class SeedNoise:
    """Standard deviation of a score between training seeds of one recipe, pooled over recipes.

    Attributes:
        sd: Of the campaign's score; nan where no recipe has two seeds.
        df: Degrees of freedom: the sum over recipes of seeds - 1.
        leaf_sd: The same for each leaf's score.
    """

    sd: float
    df: int
    leaf_sd: Mapping[str, float] = field(default_factory=dict)

    def of_leaf(self, name: str) -> SeedNoise:
        """Return the noise of one leaf's score."""
        return SeedNoise(self.leaf_sd.get(name, math.nan), self.df if name in self.leaf_sd else 0)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A score with its interval.

    Attributes:
        score: Mean over leaves, then seeds.
        ci_low: Lower end, clipped to [0, 1].
        ci_high: Upper end, clipped to [0, 1].
        se: Standard error over seeds and items; nan where one seed and no pooled noise leave it unknown.
        df: Degrees of freedom.
        n_seeds: Training seeds.
        n_items: Items.
        confidence: Coverage of the interval.
    """

    score: float
    ci_low: float
    ci_high: float
    se: float
    df: float
    n_seeds: int
    n_items: int
    confidence: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Difference of two recipes' scores, paired by item.

    Attributes:
        diff: Score of the second minus score of the first. ci_low: Lower end of the interval. ci_high: Upper
        end. p: Two-sided p-value of no difference (after Holm's correction in `compare_leaves`). se: Standard
        error; nan where it cannot be known. df: Degrees of freedom. mde: Minimum detectable effect: the true
        difference that this comparison would find with a power of 80 %. alpha: Two-sided level. verdict:
        `better` or `worse` where p <= alpha, else `not distinguishable`. n_seeds: Training seeds of the first
        and of the second. n_items: Items.
    """

    diff: float
    ci_low: float
    ci_high: float
    p: float
    se: float
    df: float
    mde: float
    alpha: float
    verdict: Verdict
    n_seeds: tuple[int, int]
    n_items: int

    def text(self) -> str:
        """Return the comparison as one line for people."""
        if math.isnan(self.se):
            return f"not distinguishable: {self.diff:+.3f}, one seed each and no known seed noise"
        interval = f"{self.diff:+.3f} [{self.ci_low:+.3f}, {self.ci_high:+.3f}]"
        return f"{self.verdict}: {interval}; smallest detectable difference {self.mde:.3f}"


@dataclass(frozen=True, slots=True)
class _Part:
    """A variance component of a mean and its degrees of freedom."""

    variance: float
    df: float


def seed_noise_floor(tables: Iterable[ScoreTable]) -> SeedNoise:
    """Pool the variance between seeds over recipes: what a change of seed alone does to a score.

    Args:
        tables: One table a recipe, e.g. all rounds of a campaign; those with one seed tell nothing.
    """
    total, df = 0.0, 0
    leaves: dict[str, tuple[float, int]] = {}
    for table in tables:
        n = len(table.seeds)
        if n < 2:
            continue
        df += n - 1
        total += float(table.seed_scores_S.var(ddof=1)) * (n - 1)
        spread_L = table.leaf_scores_SL.var(axis=0, ddof=1)
        for name, variance in zip(table.leaf_names, spread_L, strict=True):
            known, n_known = leaves.get(name, (0.0, 0))
            leaves[name] = known + float(variance) * (n - 1), n_known + n - 1
    if df == 0:
        return SeedNoise(math.nan, 0)
    return SeedNoise(math.sqrt(total / df), df, {name: math.sqrt(v / n) for name, (v, n) in leaves.items()})


def estimate(table: ScoreTable, noise: SeedNoise | None = None, *, confidence: float = 0.95) -> Estimate:
    """Return a recipe's score with an interval over training seeds and items.

    Args:
        table: Its scores.
        noise: Seed noise pooled over the campaign's rounds; the table's own where absent.
        confidence: Coverage in (0, 1).

    Raises:
        ConfigError: `confidence` is outside (0, 1).
    """
    alpha = _level(1 - confidence)
    noise = noise or seed_noise_floor([table])
    mean_I = table.scores_SI.mean(axis=0)
    seed = _Part(noise.sd**2 / len(table.seeds), noise.df)
    variance, df = _combine(seed, _item_part(table, mean_I), _interaction_part(table))
    variance = max(variance, _binomial_floor(table))
    score = campaign_score(table)
    half = _quantile(1 - alpha / 2, df) * math.sqrt(variance)
    low, high = (0.0, 1.0) if math.isnan(half) else (max(0.0, score - half), min(1.0, score + half))
    return Estimate(score, low, high, math.sqrt(variance), df, len(table.seeds), len(table.items), confidence)


def estimate_leaves(
    table: ScoreTable, noise: SeedNoise | None = None, *, confidence: float = 0.95
) -> dict[str, Estimate]:
    """Return each leaf's score with its interval, in the order of the leaves."""
    noise = noise or seed_noise_floor([table])
    return {
        name: estimate(table.leaf(name), noise.of_leaf(name), confidence=confidence)
        for name in table.leaf_names
    }


def compare(
    before: ScoreTable, after: ScoreTable, noise: SeedNoise | None = None, *, alpha: float = 0.05
) -> Comparison:
    """Compare two recipes on the same items.

    Items are paired; training seeds are not, since equal seed numbers on different data share nothing.

    Args:
        before: Scores of the first recipe.
        after: Scores of the second.
        noise: Seed noise pooled over the campaign's rounds; pooled over the two where absent.
        alpha: Two-sided level; the interval covers 1 - alpha.

    Raises:
        FrozenSettingsError: The two were scored on different items.
        ConfigError: `alpha` is outside (0, 1).
    """
    _level(alpha)
    after = before.aligned(after)
    noise = noise or seed_noise_floor([before, after])
    n_before, n_after = len(before.seeds), len(after.seeds)
    diff_I = after.scores_SI.mean(axis=0) - before.scores_SI.mean(axis=0)
    seed = _Part(noise.sd**2 * (1 / n_before + 1 / n_after), noise.df)
    inter = _add(_interaction_part(before), _interaction_part(after))
    variance, df = _combine(seed, _item_part(before, diff_I), inter)
    diff = campaign_score(after) - campaign_score(before)
    floor = _binomial_floor(before) + _binomial_floor(after)
    return _conclude(
        diff,
        max(variance, floor),
        df,
        alpha=alpha,
        n_seeds=(n_before, n_after),
        n_items=len(before.items),
    )


def compare_leaves(
    before: ScoreTable, after: ScoreTable, noise: SeedNoise | None = None, *, alpha: float = 0.05
) -> dict[str, Comparison]:
    """Compare two recipes leaf by leaf; p-values are Holm's, so one false verdict in all has probability <=
    alpha.

    Intervals stay those of one comparison at `alpha`.

    Raises:
        FrozenSettingsError: The two were scored on different items.
        ConfigError: `alpha` is outside (0, 1).
    """
    after = before.aligned(after)
    noise = noise or seed_noise_floor([before, after])
    raw = {
        name: compare(before.leaf(name), after.leaf(name), noise.of_leaf(name), alpha=alpha)
        for name in before.leaf_names
    }
    adjusted = holm([comparison.p for comparison in raw.values()])
    return {name: _with_p(comparison, p) for (name, comparison), p in zip(raw.items(), adjusted, strict=True)}


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's adjusted p-values, in the given order."""
    order = np.argsort(p_values, kind="stable")
    adjusted, largest = [1.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, float(p_values[index]) * (len(p_values) - rank)))
        adjusted[index] = largest
    return adjusted


def minimum_detectable_effect(se: float, df: float, *, alpha: float = 0.05, power: float = POWER) -> float:
    """Return the true difference that a two-sided test at `alpha` finds with probability `power`."""
    return (_quantile(1 - alpha / 2, df) + _quantile(power, df)) * se


def _conclude(
    diff: float, variance: float, df: float, *, alpha: float, n_seeds: tuple[int, int], n_items: int
) -> Comparison:
    se = math.sqrt(variance)
    unknown: Verdict = "not distinguishable"
    if math.isnan(se):
        return Comparison(diff, -math.inf, math.inf, 1.0, se, 0.0, math.inf, alpha, unknown, n_seeds, n_items)
    half = _quantile(1 - alpha / 2, df) * se
    p = _two_sided(diff / se, df) if se > 0 else float(diff == 0)
    mde = minimum_detectable_effect(se, df, alpha=alpha)
    raw = Comparison(diff, diff - half, diff + half, p, se, df, mde, alpha, unknown, n_seeds, n_items)
    return _with_p(raw, p)


def _with_p(comparison: Comparison, p: float) -> Comparison:
    verdict: Verdict = "not distinguishable"
    if p <= comparison.alpha:
        verdict = "better" if comparison.diff > 0 else "worse"
    return replace(comparison, p=p, verdict=verdict)


def _item_part(table: ScoreTable, values_I: FloatArray) -> _Part:
    """Variance of the mean over leaves of `values_I` from drawing the items, stratified by leaf."""
    means_L, sizes_L = table.leaf_means(values_I), table.leaf_sizes_L
    squares_L = table.leaf_sums((values_I - means_L[table.leaf_index_I]) ** 2)
    return _stratified(squares_L, sizes_L - 1, sizes_L)


def _interaction_part(table: ScoreTable) -> _Part:
    """Variance of the mean from item-by-seed noise: residuals after seed and item means in each leaf."""
    n_seeds = len(table.seeds)
    if n_seeds < 2:
        return _Part(0.0, 1.0)
    index_I, scores = table.leaf_index_I, table.scores_SI
    item_I = scores.mean(axis=0)
    residual_SI = scores - item_I - (table.leaf_scores_SL - table.leaf_means(item_I))[:, index_I]
    squares_L = table.leaf_sums((residual_SI**2).sum(axis=0))
    part = _stratified(squares_L, (table.leaf_sizes_L - 1) * (n_seeds - 1), table.leaf_sizes_L)
    return _Part(part.variance / n_seeds, part.df)


def _stratified(squares_L: FloatArray, df_L: FloatArray, sizes_L: FloatArray) -> _Part:
    """Variance of an equal-weight mean of leaf means, from each leaf's sum of squares.

    A leaf of one item has no variance of its own and takes the mean of the others', or, where there is none,
    the largest a score in [0, 1] can have.
    """
    known = df_L > 0
    variance_L = np.full(len(sizes_L), 0.25)
    variance_L[known] = squares_L[known] / df_L[known]
    if known.any():
        variance_L[~known] = variance_L[known].mean()
    parts_L = variance_L / sizes_L / len(sizes_L) ** 2
    total = float(parts_L.sum())
    weight = float((parts_L[known] ** 2 / df_L[known]).sum())
    return _Part(total, total**2 / weight if weight > 0 else float(max(df_L.sum(), 1.0)))


def _add(first: _Part, second: _Part) -> _Part:
    total = first.variance + second.variance
    weight = first.variance**2 / first.df + second.variance**2 / second.df
    return _Part(total, total**2 / weight if weight > 0 else first.df + second.df)


def _combine(seed: _Part, item: _Part, inter: _Part) -> tuple[float, float]:
    """Return the variance seed + max(0, item - interaction) and its degrees of freedom (Satterthwaite).

    Interaction noise is in both of the first two, so it is taken off once.
    """
    if seed.df <= 0 or math.isnan(seed.variance):
        return math.nan, 0.0
    if item.variance <= inter.variance:
        return seed.variance, seed.df
    total = seed.variance + item.variance - inter.variance
    weight = sum(part.variance**2 / part.df for part in (seed, item, inter))
    return total, total**2 / weight if weight > 0 else seed.df


def _binomial_floor(table: ScoreTable) -> float:
    """Return a variance for leaves whose scores are all alike, where every component is measured as zero.

    Such leaves (0 of 60, 60 of 60) are taken to have one success and one failure more.
    """
    mean_I = table.scores_SI.mean(axis=0)
    means_L, sizes_L = table.leaf_means(mean_I), table.leaf_sizes_L
    alike_L = table.leaf_sums(np.ptp(table.scores_SI, axis=0)) == 0
    alike_L &= (means_L == 0) | (means_L == 1)
    shrunk_L = (means_L * sizes_L + 1) / (sizes_L + 2)
    parts_L = np.where(alike_L, shrunk_L * (1 - shrunk_L) / (sizes_L + 2), 0.0)
    return float(parts_L.sum()) / len(sizes_L) ** 2


def _level(alpha: float) -> float:
    if not 0 < alpha < 1:
        raise ConfigError(f"a level must lie between 0 and 1, not {alpha}", where="statistics")
    return alpha


def _quantile(probability: float, df: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(df, probability)) if df > 0 else math.nan


def _two_sided(t: float, df: float) -> float:
    from scipy.special import stdtr

    return float(2 * stdtr(df, -abs(t)))
