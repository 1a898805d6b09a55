"""What decoding needs and returns, whatever the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class DecodePlan:
    """How to continue prompts.

    Attributes:
        stop_id: The end-of-turn token; an answer ends before it.
        pad_id: Fills the left of shorter prompts.
        max_new_tokens: Longest answer.
        batch_size: Prompts side by side.
        context: Longest prompt plus answer; 0 is unlimited.
        temperature: 0 is greedy.
        uniforms: (prompts, max_new_tokens) numbers in [0, 1) that decide sampling; None where greedy.
    """

    stop_id: int
    pad_id: int
    max_new_tokens: int
    batch_size: int
    context: int = 0
    temperature: float = 0.0
    uniforms: NDArray[np.float64] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """One continuation.

    Attributes:
        ids: Generated tokens without the end-of-turn token.
        truncated: It did not end by itself.
    """

    ids: tuple[int, ...]
    truncated: bool


def draw_uniforms(
    seed: int, items: Sequence[int], samples: Sequence[int], length: int
) -> NDArray[np.float64]:
    """Draw the numbers that decide sampling.

    Each (seed, item, sample) has its own stream, so that an answer depends neither on its batch nor on its
    neighbours.

    Returns:
        (len(items), length) float64 in [0, 1).
    """
    rows = [
        np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, item, sample]))).random(length)
        for item, sample in zip(items, samples, strict=True)
    ]
    return np.array(rows, dtype=np.float64).reshape(len(rows), length)


def choose_tokens(logits: torch.Tensor, temperature: float, uniforms: torch.Tensor | None) -> torch.Tensor:
    """Pick the next token of each row.

    Args:
        logits: (B, V).
        temperature: 0 picks the most likely token.
        uniforms: (B,) float64, position in the cumulative distribution.

    Returns:
        (B,) int64.
    """
    import torch

    if temperature <= 0.0 or uniforms is None:
        return logits.argmax(-1)
    cumulative = torch.softmax(logits.double() / temperature, dim=-1).cumsum(-1)
    # Rounding may leave the last sum a little under 1.
    wanted = uniforms.unsqueeze(-1) * cumulative[:, -1:]
    return torch.searchsorted(cumulative, wanted, right=True).squeeze(-1).clamp_(max=logits.shape[-1] - 1)


def batches(prompts: Sequence[Sequence[int]], plan: DecodePlan) -> tuple[list[list[int]], list[int]]:
    """Split prompts into batches of similar length.

    Returns:
        (batches of prompt indices, indices of prompts that leave no room for an answer).
    """
    room = [i for i, p in enumerate(prompts) if p and (not plan.context or len(p) < plan.context)]
    full = sorted(set(range(len(prompts))) - set(room))
    room.sort(key=lambda i: (len(prompts[i]), i))
    return [room[k : k + plan.batch_size] for k in range(0, len(room), plan.batch_size)], full


def new_tokens(plan: DecodePlan, longest_prompt: int) -> int:
    """Return how many tokens a batch may generate inside the model's context."""
    return min(plan.max_new_tokens, plan.context - longest_prompt) if plan.context else plan.max_new_tokens


def left_pad(prompts: Sequence[Sequence[int]], pad_id: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (ids, real), each (B, longest prompt); `real` is False on padding."""
    import torch

    width = max(len(p) for p in prompts)
    ids = np.full((len(prompts), width), pad_id, dtype=np.int64)
    real = np.zeros((len(prompts), width), dtype=bool)
    for row, prompt in enumerate(prompts):
        ids[row, width - len(prompt) :] = prompt
        real[row, width - len(prompt) :] = True
    return torch.from_numpy(ids), torch.from_numpy(real)


def finish(tokens: Sequence[int], stop_id: int) -> Answer:
    """Cut a continuation at its end-of-turn token."""
    ids = list(tokens)
    if stop_id in ids:
        return Answer(tuple(ids[: ids.index(stop_id)]), truncated=False)
    return Answer(tuple(ids), truncated=True)
