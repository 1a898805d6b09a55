"""The order rows are trained in: copies sorted by position, cut into equal steps, packed into sequences (I2).

A position is a fraction of the budget. All copies of all rows are sorted at once, so order means the same at
half a pass and at ten passes.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from autosft.actions.sampling import draw_copies, expected_copies
from autosft.errors import BudgetError
from autosft.pool import Pool

FILE_JITTER = 0.05
_PLAN = 0x504C414E  # keeps the plan's random stream apart from every other one of the same seeds


@dataclass(frozen=True)
class Plan:
    """What a run is fed, in order.

    Attributes:
        rows: int32, row index of each training sequence part, in training order.
        step_starts: int64, steps + 1 positions in `rows`.
        sequence_starts: int64, positions in `rows` where a packed sequence starts; every step starts one.
    """

    rows: NDArray[np.int32]
    step_starts: NDArray[np.int64]
    sequence_starts: NDArray[np.int64]

    @property
    def steps(self) -> int:
        """Optimiser steps."""
        return len(self.step_starts) - 1

    @property
    def sha(self) -> str:
        """SHA-256 over the three arrays."""
        digest = hashlib.sha256()
        for array in (self.rows, self.step_starts, self.sequence_starts):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def save(self, path: Path) -> None:
        """Write the plan as an uncompressed `.npz`."""
        np.savez(path, rows=self.rows, step_starts=self.step_starts, sequence_starts=self.sequence_starts)

    @classmethod
    def load(cls, path: Path) -> Plan:
        """Read what `save` wrote."""
        with np.load(path, allow_pickle=False) as data:
            return cls(data["rows"], data["step_starts"], data["sequence_starts"])


def optimizer_steps(budget_tokens: int, batch_tokens: int) -> int:
    """Return the number of steps of every build of a budget: ceil(B / batch_tokens)."""
    return -(-budget_tokens // batch_tokens)


def make_plan(
    pool: Pool,
    tokens: NDArray[np.int64],
    *,
    budget_tokens: int,
    batch_tokens: int,
    sequence_tokens: int,
    order: Literal["file", "shuffle"],
    max_passes: float,
    recipe_seed: int,
    seed: int,
    strata: NDArray[np.int64] | None = None,
) -> Plan:
    """Lay out one training run.

    Args:
        pool: Rows with weights and order keys.
        tokens: Training tokens of each row.
        budget_tokens: B.
        batch_tokens: Tokens of a step; the last steps are not shorter, all share B evenly.
        sequence_tokens: Most tokens of a packed sequence.
        order: Place of rows without an order key: the pool's order, or anywhere.
        max_passes: Most copies of one row.
        recipe_seed: The recipe's seed.
        seed: The run's training seed.
        strata: What `strata_of` says of the pool, where several seeds are planned.

    Raises:
        BudgetError: No row can be trained on, or a step would stay empty.
    """
    rng = np.random.default_rng([_PLAN, recipe_seed, seed])
    expected = expected_copies(pool.weights, tokens, budget_tokens)
    strata = strata_of(pool) if strata is None else strata
    copies = draw_copies(expected, tokens, budget_tokens, int(max_passes), rng, strata)
    rows = np.repeat(np.arange(len(pool)), copies)
    rows = rows[np.argsort(_positions(pool, rows, order, rng), kind="stable")]
    steps = optimizer_steps(budget_tokens, batch_tokens)
    lengths = tokens[rows]
    step_starts = _cut_steps(lengths, budget_tokens, steps)
    return Plan(rows.astype(np.int32), step_starts, _pack(lengths, step_starts, sequence_tokens))


def strata_of(pool: Pool) -> NDArray[np.int64]:
    """Number the groups whose shares a draw keeps: place in the order, source, leaf. Equal for all seeds."""
    source, sources = _ranks(pool.table.column("source"))
    leaf, leaves = _ranks(pc.fill_null(pool.table.column("leaf"), ""))
    keys = pool.order_keys
    if np.isnan(keys).all():
        place = np.zeros(len(pool), dtype=np.int64)
    else:
        place = np.unique(np.nan_to_num(keys, nan=2.0), return_inverse=True)[1].reshape(-1)
    _, group = np.unique((place * sources + source) * leaves + leaf, return_inverse=True)
    numbers: NDArray[np.int64] = group.reshape(-1).astype(np.int64)
    return numbers


def _ranks(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], int]:
    """Return each text's rank among the distinct ones, and how many those are."""
    coded = column.combine_chunks().dictionary_encode()
    coded = coded if isinstance(coded, pa.Array) else coded.unify_dictionaries().combine_chunks()
    names = coded.dictionary.to_pylist()
    rank = np.empty(len(names), dtype=np.int64)
    rank[sorted(range(len(names)), key=lambda i: names[i])] = np.arange(len(names))
    ranks: NDArray[np.int64] = rank[coded.indices.to_numpy()]
    return ranks, max(1, len(names))


def _positions(
    pool: Pool, rows: NDArray[np.int64], order: Literal["file", "shuffle"], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw the position of each copy as a fraction of the budget."""
    noise = rng.random(len(rows)) - 0.5
    keys, jitter = pool.order_keys.copy(), pool.order_jitter.copy()
    free = np.isnan(keys)
    if order == "file":
        keys[free] = (np.arange(len(pool)) / max(1, len(pool)))[free]
        jitter[free] = FILE_JITTER
    else:
        keys[free], jitter[free] = 0.5, 1.0
    positions: NDArray[np.float64] = keys[rows] + jitter[rows] * noise
    return positions


def _cut_steps(lengths: NDArray[np.int64], budget_tokens: int, steps: int) -> NDArray[np.int64]:
    """Step k ends with the row at which the tokens so far reach (k + 1) / steps of the budget."""
    total = np.cumsum(lengths)
    goals = np.arange(1, steps, dtype=np.int64) * budget_tokens
    ends = np.searchsorted(total * steps, goals, side="left") + 1
    starts = np.concatenate([[0], ends, [len(lengths)]]).astype(np.int64)
    if (np.diff(starts) < 1).any():
        longest = int(lengths.max()) if len(lengths) else 0
        raise BudgetError(
            f"{steps} steps cannot all be filled: rows of up to {longest} tokens for {budget_tokens} in all",
            where="build",
            hint="raise trainer.batch_tokens above the longest row, or lower trainer.sequence_tokens",
        )
    return starts


def _pack(
    lengths: NDArray[np.int64], step_starts: NDArray[np.int64], sequence_tokens: int
) -> NDArray[np.int64]:
    """Fill sequences in order; a new one starts where the next row does not fit, and at every step."""
    new_step = np.zeros(len(lengths) + 1, dtype=bool)
    new_step[step_starts] = True
    starts, filled = [], 0
    for at, (length, opens) in enumerate(zip(lengths.tolist(), new_step[:-1].tolist(), strict=True)):
        if opens or filled + length > sequence_tokens:
            starts.append(at)
            filled = 0
        filled += length
    return np.array(starts, dtype=np.int64)
