"""Rows laid out for one forward pass: one flat sequence of tokens, attention isolated per row.

Shapes: T tokens of the flat sequence (padded to a multiple of `ALIGN`), S supervised positions (padded
likewise), P rows ("parts"), K attention slots.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

# CPU kernels for bfloat16 are generated once per shape (about 3 ms each); rounding keeps the shapes few.
ALIGN = 64
IGNORED = -100
_GROUP_RATIO = 2.0


@dataclass(frozen=True, slots=True)
class PackedBatch:
    """One forward pass.

    Attributes:
        ids_T: Token ids, int64; padding is 0.
        positions_T: Position inside the row, int64; padding is 0.
        n_tokens: Tokens that are not padding.
        starts_P: First token of each row in `ids_T`.
        lengths_P: Tokens of each row.
        predict_S: Positions whose next token is supervised, int64.
        targets_S: The supervised tokens, int64; `IGNORED` on padding.
        part_S: Which row each supervised token belongs to, int64.
        n_targets: Supervised positions that are not padding.
        groups: (rows, padded length) of each attention group; rows of similar length share one.
        token_of_slot_K: Token each attention slot reads (slots of all groups, one after another).
        slot_of_token: Slot of each real token, int64, `n_tokens` long.
    """

    ids_T: torch.Tensor
    positions_T: torch.Tensor
    n_tokens: int
    starts_P: NDArray[np.int64]
    lengths_P: NDArray[np.int64]
    predict_S: torch.Tensor
    targets_S: torch.Tensor
    part_S: torch.Tensor
    n_targets: int
    groups: tuple[tuple[int, int], ...]
    token_of_slot_K: torch.Tensor
    slot_of_token: torch.Tensor

    def to(self, device: torch.device) -> PackedBatch:
        """Return the batch with its tensors on a device."""
        names = (
            "ids_T",
            "positions_T",
            "predict_S",
            "targets_S",
            "part_S",
            "token_of_slot_K",
            "slot_of_token",
        )
        if self.ids_T.device == device:
            return self
        return replace(self, **{name: getattr(self, name).to(device) for name in names})


def pack_rows(
    tokens: list[NDArray[np.int32]], masks: list[NDArray[np.uint8]], *, align: int = ALIGN
) -> PackedBatch:
    """Lay rows out as one flat sequence.

    Args:
        tokens: Token ids of each row, at least one row and one token a row.
        masks: Loss mask of each row: 1 where the token itself is to be predicted. A row's first token has
            nothing before it and is never supervised.
        align: Round the sequence and the supervised positions up to a multiple of this.

    Returns:
        The batch, on the CPU.
    """
    import torch

    lengths = np.array([len(t) for t in tokens], dtype=np.int64)
    starts = np.cumsum(lengths) - lengths
    n_tokens = int(lengths.sum())
    flat = np.concatenate(tokens).astype(np.int64)
    mask = np.concatenate(masks).astype(bool)
    mask[starts] = False
    part_of_token = np.repeat(np.arange(len(tokens)), lengths)
    supervised = np.flatnonzero(mask)
    padded = _round_up(n_tokens, align)
    ids = np.zeros(padded, dtype=np.int64)
    ids[:n_tokens] = flat
    positions = np.zeros(padded, dtype=np.int64)
    positions[:n_tokens] = np.arange(n_tokens) - np.repeat(starts, lengths)
    size = _round_up(len(supervised), align)
    predict = np.zeros(size, dtype=np.int64)
    predict[: len(supervised)] = supervised - 1
    targets = np.full(size, IGNORED, dtype=np.int64)
    targets[: len(supervised)] = flat[supervised]
    part = np.zeros(size, dtype=np.int64)
    part[: len(supervised)] = part_of_token[supervised]
    groups, token_of_slot, slot_of_token = _attention_slots(starts, lengths, n_tokens)
    return PackedBatch(
        ids_T=torch.from_numpy(ids),
        positions_T=torch.from_numpy(positions),
        n_tokens=n_tokens,
        starts_P=starts,
        lengths_P=lengths,
        predict_S=torch.from_numpy(predict),
        targets_S=torch.from_numpy(targets),
        part_S=torch.from_numpy(part),
        n_targets=len(supervised),
        groups=groups,
        token_of_slot_K=torch.from_numpy(token_of_slot),
        slot_of_token=torch.from_numpy(slot_of_token),
    )


def _attention_slots(
    starts: NDArray[np.int64], lengths: NDArray[np.int64], n_tokens: int
) -> tuple[tuple[tuple[int, int], ...], NDArray[np.int64], NDArray[np.int64]]:
    """Group rows of similar length into right-padded rectangles, so that attention never sees another row."""
    order = np.argsort(-lengths, kind="stable")
    groups: list[tuple[int, int]] = []
    token_of_slot: list[NDArray[np.int64]] = []
    slot_of_token = np.empty(n_tokens, dtype=np.int64)
    base = begin = 0
    while begin < len(order):
        width = int(lengths[order[begin]])
        end = begin + 1
        while end < len(order) and lengths[order[end]] * _GROUP_RATIO >= width:
            end += 1
        members = order[begin:end]
        # Slots past a row's end repeat its last token: causal attention keeps them out of every real output.
        within = np.minimum(np.arange(width)[None, :], lengths[members][:, None] - 1)
        token_of_slot.append((starts[members][:, None] + within).ravel())
        for k, row in enumerate(members):
            first = base + k * width
            slot_of_token[starts[row] : starts[row] + lengths[row]] = np.arange(first, first + lengths[row])
        groups.append((len(members), width))
        base += len(members) * width
        begin = end
    return tuple(groups), np.concatenate(token_of_slot), slot_of_token


def _round_up(value: int, multiple: int) -> int:
    return max(multiple, -(-value // multiple) * multiple)
