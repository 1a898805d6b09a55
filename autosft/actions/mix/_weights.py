"""Turning wanted token shares of groups into row weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from autosft.pool import Pool

PLAIN = ""  # group of rows without a leaf


def group_tokens(
    labels: Sequence[str], weights: NDArray[np.float64], tokens: NDArray[np.int64]
) -> dict[str, float]:
    """Return each group's weighted tokens."""
    totals: dict[str, float] = {}
    for label, amount in zip(labels, (weights * tokens).tolist(), strict=True):
        totals[label] = totals.get(label, 0.0) + amount
    return totals


def with_shares(
    pool: Pool, labels: Sequence[str], totals: Mapping[str, float], shares: Mapping[str, float]
) -> Pool:
    """Scale each group's row weights to the wanted share of tokens; groups left out keep theirs."""
    total = sum(totals.values())
    factor = {name: share * total / totals[name] for name, share in shares.items()}
    return pool.with_weights(pool.weights * np.array([factor.get(label, 1.0) for label in labels]))
