"""Turning a sequence of rows into places, as fractions of the token budget."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def token_places(
    sequence: NDArray[np.int64], amount: NDArray[np.float64], start: float = 0.0, width: float = 1.0
) -> NDArray[np.float64]:
    """Return where the middle of each row lies when rows follow one another.

    Args:
        sequence: Row indices in the wanted order, each once.
        amount: Weighted tokens of every row of the pool.
        start: Where the sequence begins, a fraction of the budget.
        width: Fraction of the budget it fills.

    Returns:
        A place in [0, 1] for each row of the pool; 0.5 for rows outside the sequence.
    """
    own = amount[sequence]
    middle = (np.cumsum(own) - own / 2) / max(float(own.sum()), 1e-12)
    places = np.full(len(amount), 0.5)
    places[sequence] = np.clip(start + width * middle, 0.0, 1.0)
    return places
