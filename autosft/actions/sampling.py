"""How often each row is trained on: whole numbers of copies that add up to the budget (I2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from autosft.errors import BudgetError

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
_SIZES = 11  # borders of length classes inside a group


def expected_copies(weights: FloatArray, tokens: IntArray, budget_tokens: int) -> FloatArray:
    """Return the expected copies of each row: its weight, scaled so that the copies' tokens make the budget.

    Raises:
        BudgetError: No row has both weight and tokens.
    """
    total = float((weights * tokens).sum())
    if total <= 0:
        raise BudgetError(
            "no row has a weight above 0", where="build", hint="undo the action that set all weights to 0"
        )
    return weights * (budget_tokens / total)


def draw_copies(
    expected: FloatArray,
    tokens: IntArray,
    budget_tokens: int,
    max_copies: int,
    rng: np.random.Generator,
    strata: IntArray | None = None,
) -> IntArray:
    """Draw whole copies: each row gets its expected number rounded down or up, the tokens make the budget.

    Systematic sampling rounds; rows are then taken out and put in at random until the tokens left over are
    less than any row; at last one row is added, or exchanged for another, to close the gap exactly where
    lengths allow it.

    Args:
        expected: Expected copies, at most `max_copies`.
        tokens: Tokens of each row.
        budget_tokens: B.
        max_copies: No row gets more copies than this.
        rng: Source of every choice.
        strata: Group of each row. Rows are rounded group by group, short and long ones alternating, so that
            every group gets its expected share of copies and of tokens.

    Returns:
        Copies of each row; their tokens are at most B and miss it by less than the longest row.
    """
    low = np.floor(expected + 1e-9).astype(np.int64)
    high = np.minimum(np.ceil(expected - 1e-9).astype(np.int64), max_copies)
    usable = (expected > 0) & (tokens > 0)
    copies = np.clip(_systematic(expected, tokens, strata, rng), low, np.maximum(low, high))
    copies[~usable] = 0
    order = rng.permutation(len(expected))
    gap = budget_tokens - int((copies * tokens).sum())
    gap = _take_out(copies, low, tokens, order, gap)
    gap = _put_in(copies, high, tokens, order, gap)
    if gap > 0:
        limit = np.where(usable, max_copies, 0)
        for floor, ceiling in ((low, high), (np.zeros_like(low), limit)):
            adds = order[((copies < ceiling) & (tokens > 0))[order]]
            takes = order[(copies > floor)[order]]
            if _close(copies, tokens, gap, adds=adds, takes=takes):
                break
    return copies


def _systematic(
    expected: FloatArray, tokens: IntArray, strata: IntArray | None, rng: np.random.Generator
) -> IntArray:
    """Round expectations so that every run of the sampling order gets its total, up to one copy."""
    group = np.zeros(len(expected), dtype=np.int64) if strata is None else strata
    size = np.searchsorted(np.quantile(tokens, np.linspace(0, 1, _SIZES)), tokens)
    order = np.lexsort((rng.random(len(expected)), size, group))
    points = np.floor(np.cumsum(expected[order]) + rng.random()).astype(np.int64)
    copies = np.empty(len(expected), dtype=np.int64)
    copies[order] = np.diff(points, prepend=0)
    return copies


def _take_out(copies: IntArray, low: IntArray, tokens: IntArray, order: IntArray, gap: int) -> int:
    """Remove rounded-up copies while the budget is exceeded; return the tokens now left over."""
    for allowed in (low, np.zeros_like(low)):
        if gap >= 0:
            break
        for row in order[(copies > allowed)[order]].tolist():
            if gap >= 0:
                break
            copies[row] -= 1
            gap += int(tokens[row])
    return gap


def _put_in(copies: IntArray, high: IntArray, tokens: IntArray, order: IntArray, gap: int) -> int:
    """Add copies of rounded-down rows while they fit; return the tokens still left over."""
    rows = order[((copies < high) & (tokens > 0))[order]]
    if not len(rows):
        return gap
    shortest = int(tokens[rows].min())
    for row in rows.tolist():
        if gap < shortest:
            break
        if tokens[row] <= gap:
            copies[row] += 1
            gap -= int(tokens[row])
    return gap


def _close(copies: IntArray, tokens: IntArray, gap: int, *, adds: IntArray, takes: IntArray) -> bool:
    """Close a gap by adding a row of that length, or exchanging a row for a longer one; say if it worked."""
    add_of = _first_of_length(tokens, adds)
    if gap in add_of:
        copies[add_of[gap]] += 1
        return True
    for length, row in _first_of_length(tokens, takes).items():
        longer = add_of.get(length + gap)
        if longer is not None:
            copies[row] -= 1
            copies[longer] += 1
            return True
    return False


def _first_of_length(tokens: IntArray, rows: IntArray) -> dict[int, int]:
    lengths, first = np.unique(tokens[rows], return_index=True)
    found = {int(length): int(rows[at]) for length, at in zip(lengths, first, strict=True)}
    return dict(sorted(found.items(), key=lambda pair: -pair[0]))
