"""Means of repeated samples, and where their variance comes from: sampling, items, training seeds.

Legend of array suffixes: S training seeds, I items, K samples of an item.

Source: method of moments in the crossed design seed x item with K samples in each cell (Searle, Casella,
McCulloch: "Variance Components", 1992, chapter 4); avg@k as the mean over items of the mean of k samples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from autosft.errors import SuiteError

_Z95 = 1.959963984540054


@dataclass(frozen=True, slots=True)
class VarianceParts:
    """Variance components of single verdicts, each at least 0.

    Attributes:
        sampling: Between samples of one item under one seed; nan with one sample.
        item: Between items.
        seed: Between training seeds; nan with one seed.
        interaction: Seed by item, what sampling does not explain; nan with one seed.
    """

    sampling: float
    item: float
    seed: float
    interaction: float


@dataclass(frozen=True, slots=True)
class SampleMean:
    """A mean of verdicts (avg@k) with its interval over items and samples, for one checkpoint.

    Attributes:
        mean: Mean over items of the mean of their samples, a fraction.
        ci_low: Lower end of the 95 % interval.
        ci_high: Upper end.
        se: Standard error; items are the units, so it holds whatever the number of samples.
        sampling_se: The part of it that more samples of the same items would take away; nan with one sample.
        n_items: Items.
        n_samples: Samples of an item.
    """

    mean: float
    ci_low: float
    ci_high: float
    se: float
    sampling_se: float
    n_items: int
    n_samples: int


def variance_parts(values_SIK: ArrayLike) -> VarianceParts:
    """Split the variance of verdicts.

    Args:
        values_SIK: Verdicts in [0, 1], seeds by items by samples.

    Raises:
        SuiteError: The array is empty or has another number of axes.
    """
    values = np.asarray(values_SIK, dtype=np.float64)
    if values.ndim != 3 or not values.size:
        raise SuiteError(f"verdicts of shape {values.shape}; wanted seeds, items, samples", where="variance")
    n_seeds, n_items, n_samples = values.shape
    cell_SI = values.mean(axis=2)
    sampling = float(values.var(axis=2, ddof=1).mean()) if n_samples > 1 else math.nan
    noise = 0.0 if math.isnan(sampling) else sampling / n_samples
    item_I, seed_S = cell_SI.mean(axis=0), cell_SI.mean(axis=1)
    between_items = float(item_I.var(ddof=1)) if n_items > 1 else math.nan
    if n_seeds < 2 or n_items < 2:
        item = max(0.0, between_items - noise) if n_items > 1 else math.nan
        return VarianceParts(sampling, item, math.nan, math.nan)
    residual_SI = cell_SI - item_I - seed_S[:, None] + values.mean()
    mixed = float((residual_SI**2).sum() / ((n_seeds - 1) * (n_items - 1)))
    return VarianceParts(
        sampling,
        item=max(0.0, between_items - mixed / n_seeds),
        seed=max(0.0, float(seed_S.var(ddof=1)) - mixed / n_items),
        interaction=max(0.0, mixed - noise),
    )


def sample_mean(values_IK: ArrayLike, weights_I: ArrayLike | None = None) -> SampleMean:
    """Return the mean of an item's samples over items, with an interval.

    Args:
        values_IK: Values in [0, 1], items by samples.
        weights_I: Weight of each item, such as its number of instructions; equal where None. The interval is
            then that of a ratio of sums over items.

    Raises:
        SuiteError: There is no item, or weights do not fit.
    """
    values = np.asarray(values_IK, dtype=np.float64)
    if values.ndim != 2 or not values.size:
        raise SuiteError(f"values of shape {values.shape}; wanted items, samples", where="mean of samples")
    n_items, n_samples = values.shape
    weights = np.ones(n_items) if weights_I is None else np.asarray(weights_I, dtype=np.float64)
    if weights.shape != (n_items,) or not (weights > 0).all():
        raise SuiteError("one positive weight an item is wanted", where="mean of samples")
    share_I = weights / weights.sum()
    item_I = values.mean(axis=1)
    mean = float((share_I * item_I).sum())
    correction = n_items / (n_items - 1) if n_items > 1 else math.nan
    variance = float((share_I**2 * (item_I - mean) ** 2).sum()) * correction
    if np.ptp(values) == 0:
        # All alike: as if one success and one failure more had been seen.
        shrunk = (mean * n_items + 1) / (n_items + 2)
        variance = shrunk * (1 - shrunk) / (n_items + 2)
    sampling = math.nan
    if n_samples > 1:
        sampling = math.sqrt(float((share_I**2 * values.var(axis=1, ddof=1)).sum()) / n_samples)
    se = math.sqrt(variance)
    low, high = (0.0, 1.0) if math.isnan(se) else (max(0.0, mean - _Z95 * se), min(1.0, mean + _Z95 * se))
    return SampleMean(mean, low, high, se, sampling, n_items, n_samples)
