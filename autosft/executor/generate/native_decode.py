"""Batched decoding with the native decoder: left-padded prompts, static cache, finished rows dropped.

Shapes: B answers of the batch, P longest prompt, L = P + new tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

from autosft.executor.generate.answers import (
    Answer,
    DecodePlan,
    batches,
    choose_tokens,
    finish,
    left_pad,
    new_tokens,
)

if TYPE_CHECKING:
    from autosft.executor.models.native_qwen3 import NativeQwen3, Weights

# Rows are dropped in steps: each drop copies the cache, and every batch size is a new shape for the kernels.
_ROWS_STEP = 16
_DROP_BELOW = 0.75


@torch.inference_mode()
def decode_native(
    model: NativeQwen3, prompts: Sequence[Sequence[int]], plan: DecodePlan, progress: Callable[[int], None]
) -> list[Answer]:
    """Continue each prompt, in order; one without room for an answer gets an empty truncated answer."""
    groups, full = batches(prompts, plan)
    answers: dict[int, Answer] = {i: Answer((), truncated=True) for i in full}
    weights = model.decoding_weights()
    for group in groups:
        texts = _decode_batch(model, weights, [prompts[i] for i in group], group, plan)
        answers.update({i: finish(text, plan.stop_id) for i, text in zip(group, texts, strict=True)})
        progress(len(answers))
    return [answers[i] for i in range(len(prompts))]


def _decode_batch(
    model: NativeQwen3,
    weights: Weights,
    prompts: Sequence[Sequence[int]],
    numbers: Sequence[int],
    plan: DecodePlan,
) -> list[list[int]]:
    """Return the continuation of each prompt, from its end-of-turn token on it repeats."""
    device = model.turn.device
    ids, real = (t.to(device) for t in left_pad(prompts, plan.pad_id))
    rows, width = ids.shape
    limit = new_tokens(plan, width)
    uniforms = None if plan.uniforms is None else torch.from_numpy(plan.uniforms[list(numbers)]).to(device)
    padding = torch.zeros(rows, width + limit, dtype=model.compute, device=device)
    padding[:, :width].masked_fill_(~real, float("-inf"))
    penalty = padding[:, None, None]
    positions = (real.long().cumsum(1) - 1).clamp_(min=0)
    causal = torch.full((width, width), float("-inf"), dtype=model.compute, device=device).triu_(1)
    mask = penalty[..., :width] + causal
    # A padding position sees itself: a row without any allowed key would be NaN.
    mask.diagonal(dim1=-2, dim2=-1).zero_()
    cache = model.new_cache(rows, width + limit)
    hidden = model.forward_cached(weights, ids, positions, cache, 0, mask)[:, -1]
    position = positions[:, -1:]
    alive = torch.arange(rows, device=device)
    ended = torch.zeros(rows, dtype=torch.bool, device=device)
    result: list[list[int]] = [[] for _ in range(rows)]
    for t in range(limit):
        chosen = choose_tokens(
            F.linear(hidden, weights.head).float(),
            plan.temperature,
            None if uniforms is None else uniforms[alive, t],
        )
        ended = ended | (chosen == plan.stop_id)
        # A finished row that is not dropped yet repeats its end-of-turn token, which is cut off later.
        chosen = torch.where(ended, plan.stop_id, chosen)
        for row, token in zip(alive.tolist(), chosen.tolist(), strict=True):
            result[row].append(token)
        count = len(alive) - int(ended.sum())
        if count == 0 or t == limit - 1:
            break
        size = min(len(alive), -(-count // _ROWS_STEP) * _ROWS_STEP)
        if size <= _DROP_BELOW * len(alive):
            keep = torch.argsort(ended.int(), stable=True)[:size].sort().values
            cache, alive, chosen, ended = cache[:, :, keep], alive[keep], chosen[keep], ended[keep]
            position, penalty = position[keep], penalty[keep]
        position = position + 1
        at = width + t
        seen = penalty[..., : at + 1]
        hidden = model.forward_cached(weights, chosen[:, None], position, cache, at, seen)[:, -1]
    return result
