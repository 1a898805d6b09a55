"""One optimiser step cut into micro-batches for data-parallel ranks, in the plan's order.

A step's rows are cut into as many parts as ranks x micro-batches, balanced by tokens. Part m x ranks + r is
micro-batch m of rank r: the ranks interleave one global sequence, whatever their number.

Shapes: T tokens of a micro-batch, padded to the step's longest; the padding is a row of its own without loss.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from autosft.executor.builds import TrainingSet

if TYPE_CHECKING:
    import torch

ALIGN = 64


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """One forward pass of one data-parallel rank.

    Attributes:
        part: Number of the part in its step; its position in the global order.
        rows: Row indices, in the order fed; empty for a part that only fills up a rank's share.
        lengths: Tokens of each row.
        ids_1T: Token ids.
        positions_1T: Positions inside the rows.
        labels_1T: The next token of each position; 0 where it carries no loss.
        loss_mask_1T: float32, 1 where the next token carries loss.
        row_T: int64, which of `rows` a position belongs to; `len(rows)` for padding.
    """

    part: int
    rows: NDArray[np.int64]
    lengths: NDArray[np.int64]
    ids_1T: torch.Tensor
    positions_1T: torch.Tensor
    labels_1T: torch.Tensor
    loss_mask_1T: torch.Tensor
    row_T: torch.Tensor

    def blocked_11TT(self) -> torch.Tensor:
        """Return the attention mask of isolated rows, True where a position must not look."""
        allowed = (self.row_T[:, None] == self.row_T[None, :]).tril()
        return ~allowed[None, None]

    def row_starts(self) -> torch.Tensor:
        """Return the int32 cumulative lengths that THD attention takes, padding as the last row."""
        import torch

        ends = [*np.cumsum(self.lengths).tolist()]
        total = self.ids_1T.shape[1]
        if not ends or ends[-1] < total:
            ends.append(total)
        return torch.tensor([0, *ends], dtype=torch.int32)

    def to(self, device: torch.device) -> MicroBatch:
        """Return it with its tensors on a device."""
        return MicroBatch(
            self.part,
            self.rows,
            self.lengths,
            *(
                tensor.to(device, non_blocking=True)
                for tensor in (
                    self.ids_1T,
                    self.positions_1T,
                    self.labels_1T,
                    self.loss_mask_1T,
                    self.row_T,
                )
            ),
        )


def cut_step(lengths: NDArray[np.int64], ranks: int, most_tokens: int) -> NDArray[np.int64]:
    """Cut a step's rows into parts of about equal tokens.

    Args:
        lengths: Tokens of the step's rows, in the plan's order.
        ranks: Data-parallel ranks.
        most_tokens: Most tokens of a part; a single longer row is a part of its own.

    Returns:
        Bounds into `lengths`; their number less one is a multiple of `ranks`. Parts may be empty.
    """
    ends = np.cumsum(lengths)
    total, largest = int(ends[-1]), int(lengths.max())
    limit = max(most_tokens, largest)
    parts = ranks * max(1, -(-total // (ranks * limit)))
    while True:
        # A row belongs to the part its middle lies in.
        middles = ends - lengths / 2.0
        part_of_row = np.minimum((middles * parts / total).astype(np.int64), parts - 1)
        sizes = np.bincount(part_of_row, weights=lengths, minlength=parts)
        if sizes.max() <= limit:
            return np.searchsorted(part_of_row, np.arange(parts + 1)).astype(np.int64)
        parts += ranks


def step_batches(
    data: TrainingSet, step: int, *, rank: int, ranks: int, most_tokens: int, align: int = ALIGN
) -> list[MicroBatch]:
    """Return a rank's micro-batches of a step; every rank gets equally many, of one length."""
    rows = data.order[int(data.step_starts[step]) : int(data.step_starts[step + 1])].astype(np.int64)
    lengths = data.offsets[rows + 1] - data.offsets[rows]
    bounds = cut_step(lengths, ranks, most_tokens)
    sizes = [int(lengths[a:b].sum()) for a, b in itertools.pairwise(bounds.tolist())]
    width = max(align, -(-max(sizes) // align) * align)
    return [
        _lay_out(data, part, rows[bounds[part] : bounds[part + 1]], width)
        for part in range(rank, len(sizes), ranks)
    ]


def _lay_out(data: TrainingSet, part: int, rows: NDArray[np.int64], width: int) -> MicroBatch:
    import torch

    lengths = data.offsets[rows + 1] - data.offsets[rows]
    ids, positions, labels = (np.zeros(width, dtype=np.int64) for _ in range(3))
    mask = np.zeros(width, dtype=np.float32)
    row_of = np.full(width, len(rows), dtype=np.int64)
    start = 0
    for k, row in enumerate(rows.tolist()):
        tokens, supervised = data.row_tokens(row), data.row_mask(row)
        end = start + len(tokens)
        ids[start:end] = tokens
        positions[start:end] = np.arange(len(tokens))
        row_of[start:end] = k
        # A row's first token has nothing before it and is never supervised.
        mask[start : end - 1] = supervised[1:] != 0
        labels[start : end - 1] = np.where(supervised[1:] != 0, tokens[1:], 0)
        start = end
    return MicroBatch(
        part,
        rows,
        lengths.astype(np.int64),
        ids_1T=torch.from_numpy(ids)[None],
        positions_1T=torch.from_numpy(positions)[None],
        labels_1T=torch.from_numpy(labels)[None],
        loss_mask_1T=torch.from_numpy(mask)[None],
        row_T=torch.from_numpy(row_of),
    )
