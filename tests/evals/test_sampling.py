"""Intervals of avg@k hold what they promise, and variance is split into its sources."""

from __future__ import annotations

import math

import numpy as np
import pytest

from autosft.errors import SuiteError
from autosft.evals.sampling import sample_mean, variance_parts


def verdicts(
    rng: np.random.Generator, seeds: int, items: int, samples: int, seed_sd: float = 0.0
) -> np.ndarray:
    ability_I = rng.beta(1.0, 1.0, size=items)
    shift_S = rng.normal(0, seed_sd, size=seeds)
    chance = np.clip(ability_I[None, :] + shift_S[:, None], 0, 1)
    return (rng.random((seeds, items, samples)) < chance[..., None]).astype(float)


def test_the_interval_covers_the_true_mean() -> None:
    rng = np.random.default_rng(0)
    for samples in (1, 5):
        covered = 0
        for _ in range(400):
            found = sample_mean(verdicts(rng, 1, 120, samples)[0])
            covered += found.ci_low <= 0.5 <= found.ci_high
        assert 0.92 <= covered / 400 <= 0.98


def test_parts_of_the_variance_are_recovered() -> None:
    rng = np.random.default_rng(1)
    parts = variance_parts(verdicts(rng, 6, 3000, 8))
    # Ability is uniform: variance 1/12 between items, mean of p(1-p) = 1/6 within.
    assert parts.item == pytest.approx(1 / 12, rel=0.1)
    assert parts.sampling == pytest.approx(1 / 6, rel=0.1)
    assert parts.seed < 0.001
    noisy = [variance_parts(verdicts(rng, 6, 400, 4, seed_sd=0.1)).seed for _ in range(30)]
    assert 0.003 < np.mean(noisy) < 0.012


def test_more_samples_take_away_the_sampling_part_only() -> None:
    rng = np.random.default_rng(2)
    few, many = (sample_mean(verdicts(rng, 1, 2000, k)[0]) for k in (2, 32))
    assert many.sampling_se < few.sampling_se / 3
    assert many.se > 0.5 * few.se


def test_edges() -> None:
    alone = sample_mean([[1.0]])
    assert math.isnan(alone.sampling_se) and (alone.ci_low, alone.ci_high) != (1.0, 1.0)
    zero = sample_mean(np.zeros((50, 3)))
    assert zero.mean == 0 and 0 < zero.ci_high < 0.1
    weighted = sample_mean([[1.0], [0.0]], [3.0, 1.0])
    assert weighted.mean == 0.75
    assert math.isnan(variance_parts([[[1.0], [0.0]]]).seed)
    for bad in ([], [[]], [1.0]):
        with pytest.raises(SuiteError):
            sample_mean(bad)
    with pytest.raises(SuiteError, match="weight"):
        sample_mean([[1.0], [0.0]], [1.0, 0.0])
