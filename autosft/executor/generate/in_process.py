"""Generation inside the worker: the native decoder for Qwen3 shapes, transformers for the rest."""

from __future__ import annotations

import time

from autosft.executor.base import check_base
from autosft.executor.generate import Generated, GenerateJob, Report
from autosft.executor.generate.answers import DecodePlan, draw_uniforms
from autosft.executor.models import load_model, pick_device

VERSION = 1
#: Type of the products while decoding. A checkpoint's bfloat16 weights are exact in float32.
_COMPUTE = "float32"


def generate(job: GenerateJob, report: Report) -> list[Generated]:
    """Answer every prompt, in item order, then by sample.

    Raises:
        BaseModelError: The checkpoint cannot be loaded.
    """
    from tokenizers import Tokenizer

    base = check_base(job.checkpoint)
    model = load_model(base, _COMPUTE, device=pick_device())
    tokenizer = Tokenizer.from_file(str(job.checkpoint / "tokenizer.json"))
    prompts, settings = job.prompts, job.settings
    n_items, n_samples = len(prompts.ids), settings.samples_per_item
    items = [i for i in range(n_items) for _ in range(n_samples)]
    samples = list(range(n_samples)) * n_items
    greedy = settings.temperature <= 0.0
    plan = DecodePlan(
        stop_id=prompts.end_of_turn_id,
        pad_id=prompts.pad_id,
        max_new_tokens=settings.max_new_tokens,
        batch_size=job.batch_size,
        context=base.context,
        temperature=settings.temperature,
        uniforms=None if greedy else draw_uniforms(job.seed, items, samples, settings.max_new_tokens),
    )
    start = time.perf_counter()
    # Greedy samples of one item are equal: decode once.
    chosen = list(range(n_items)) if greedy else items
    answers = model.answer(
        [prompts.tokens[i] for i in chosen],
        plan,
        lambda done: report(
            {
                "step": done,
                "steps": len(chosen),
                "items_per_s": round(done / (time.perf_counter() - start), 1),
            }
        ),
    )
    if greedy:
        answers = [answers[i] for i in items]
    texts = tokenizer.decode_batch([list(answer.ids) for answer in answers], skip_special_tokens=True)
    return [
        Generated(prompts.ids[i], k, text, answer.truncated, len(answer.ids))
        for i, k, text, answer in zip(items, samples, texts, answers, strict=True)
    ]
