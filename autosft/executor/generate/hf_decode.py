"""Batched decoding through `transformers.generate`, for every model the native decoder cannot represent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch

from autosft.executor.generate.answers import (
    Answer,
    DecodePlan,
    batches,
    choose_tokens,
    finish,
    left_pad,
    new_tokens,
)


@torch.inference_mode()
def decode_hf(
    model: Any,
    autocast: Callable[[], AbstractContextManager[Any]],
    prompts: Sequence[Sequence[int]],
    plan: DecodePlan,
    progress: Callable[[int], None],
) -> list[Answer]:
    """Continue each prompt, in order; one without room for an answer gets an empty truncated answer."""
    from transformers import GenerationConfig, LogitsProcessorList

    # The base's own generation settings (sampling, penalties) must not colour the evaluation.
    model.generation_config = GenerationConfig()
    device = next(model.parameters()).device
    groups, full = batches(prompts, plan)
    answers: dict[int, Answer] = {i: Answer((), truncated=True) for i in full}
    for group in groups:
        ids, real = left_pad([prompts[i] for i in group], plan.pad_id)
        config = GenerationConfig(
            max_new_tokens=new_tokens(plan, ids.shape[1]),
            do_sample=False,
            eos_token_id=plan.stop_id,
            pad_token_id=plan.pad_id,
        )
        processors = LogitsProcessorList()
        if plan.uniforms is not None:
            uniforms = torch.from_numpy(plan.uniforms[group]).to(device)
            processors.append(_Sampler(uniforms, plan.temperature, ids.shape[1]))
        with autocast():
            output = model.generate(
                input_ids=ids.to(device),
                attention_mask=real.long().to(device),
                generation_config=config,
                logits_processor=processors,
            )
        texts = output[:, ids.shape[1] :].tolist()
        answers.update({i: _answer(text, plan) for i, text in zip(group, texts, strict=True)})
        progress(len(answers))
    return [answers[i] for i in range(len(prompts))]


def _answer(text: list[int], plan: DecodePlan) -> Answer:
    return finish(text, plan.stop_id)


class _Sampler:
    """Leaves only the sampled token, so that sampling is decided by the given numbers and nothing else."""

    def __init__(self, uniforms: torch.Tensor, temperature: float, prompt_tokens: int) -> None:
        self._uniforms, self._temperature, self._prompt_tokens = uniforms, temperature, prompt_tokens

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        step = input_ids.shape[1] - self._prompt_tokens
        chosen = choose_tokens(scores, self._temperature, self._uniforms[:, step])
        return torch.full_like(scores, float("-inf")).scatter_(1, chosen[:, None], 0.0)
