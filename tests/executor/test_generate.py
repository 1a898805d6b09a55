"""Batched decoding against transformers, and against itself in other batches."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from autosft.errors import ConfigError
from autosft.executor.generate import load_generator
from autosft.executor.generate.answers import DecodePlan, choose_tokens, draw_uniforms
from autosft.executor.models.hf_causal import HfCausal
from tests.executor.test_models import native_of
from tests.executor.worlds import small_model

STOP = 5


def quiet(done: int) -> None:
    del done


@pytest.fixture(scope="module")
def ending_model():
    """A random model that ends its turns, at many different lengths: the stop token's row is scaled up."""
    model = small_model("qwen3", seed=3, tied=False)
    with torch.no_grad():
        model.lm_head.weight[STOP] *= 1.6
    return model


@pytest.fixture(scope="module")
def prompts():
    rng = np.random.default_rng(0)
    return [rng.integers(6, 448, int(rng.integers(1, 30))).tolist() for _ in range(70)]


def reference(model, prompt: list[int], limit: int) -> tuple[list[int], bool]:
    """Greedy decoding without cache, batch or padding."""
    ids = list(prompt)
    for _ in range(limit):
        with torch.no_grad():
            token = int(model(input_ids=torch.tensor([ids])).logits[0, -1].argmax())
        if token == STOP:
            return ids[len(prompt) :], False
        ids.append(token)
    return ids[len(prompt) :], True


@pytest.mark.parametrize("backend", ["native", "hf"])
def test_greedy_answers_equal_plain_decoding(ending_model, prompts, backend):
    model = native_of(ending_model) if backend == "native" else HfCausal(ending_model, torch.float32, 448)
    plan = DecodePlan(STOP, 0, max_new_tokens=24, batch_size=64)
    answers = model.answer(prompts, plan, quiet)
    expected = [reference(ending_model, p, 24) for p in prompts]
    assert [(list(a.ids), a.truncated) for a in answers] == expected
    lengths = {len(ids) for ids, _ in expected}
    assert len(lengths) > 4, (
        "the case must hold answers of many lengths, or dropping finished rows is not tried"
    )
    assert {truncated for _, truncated in expected} == {True, False}


def test_the_batch_does_not_matter(ending_model, prompts):
    model = native_of(ending_model)
    plan = DecodePlan(STOP, 0, max_new_tokens=24, batch_size=64)
    whole = model.answer(prompts, plan, quiet)
    assert model.answer(prompts, dataclasses.replace(plan, batch_size=7), quiet) == whole
    assert model.answer(prompts[::-1], plan, quiet) == whole[::-1]


def test_progress_counts_prompts(ending_model, prompts):
    seen: list[int] = []
    native_of(ending_model).answer(prompts, DecodePlan(STOP, 0, 4, batch_size=32), seen.append)
    assert seen == [32, 64, 70]


@pytest.mark.parametrize("backend", ["native", "hf"])
def test_answers_stay_inside_the_context(ending_model, backend):
    model = native_of(ending_model) if backend == "native" else HfCausal(ending_model, torch.float32, 448)
    prompts = [list(range(6, 26)), list(range(6, 24)), list(range(6, 10)), []]
    plan = DecodePlan(STOP, 0, max_new_tokens=24, batch_size=1, context=20)
    answers = model.answer(prompts, plan, quiet)
    for prompt, answer in zip(prompts, answers, strict=True):
        assert len(prompt) + len(answer.ids) <= 20 or answer.ids == ()
    assert answers[0].ids == () and answers[0].truncated
    assert answers[3].ids == () and answers[3].truncated
    assert len(answers[1].ids) <= 2


@pytest.mark.parametrize("backend", ["native", "hf"])
def test_sampling_depends_on_seed_item_and_sample_only(ending_model, prompts, backend):
    model = native_of(ending_model) if backend == "native" else HfCausal(ending_model, torch.float32, 448)
    some = prompts[:10]

    def sample(seed: int, batch: int, order: list[int]) -> dict[int, tuple[int, ...]]:
        uniforms = draw_uniforms(seed, order, [0] * len(order), 12)
        plan = DecodePlan(STOP, 0, 12, batch, temperature=1.0, uniforms=uniforms)
        return dict(
            zip(order, [a.ids for a in model.answer([some[i] for i in order], plan, quiet)], strict=True)
        )

    order = list(range(10))
    first = sample(0, 64, order)
    assert sample(0, 3, order[::-1]) == first
    assert sample(1, 64, order) != first


def test_sampled_frequencies_are_the_distribution():
    logits = torch.tensor([0.0, 1.0, 2.0, -1.0])
    uniforms = torch.from_numpy(draw_uniforms(0, list(range(4000)), [0] * 4000, 1)[:, 0])
    chosen = choose_tokens(logits.expand(4000, -1), 0.7, uniforms)
    share = torch.bincount(chosen, minlength=4) / 4000
    expected = torch.softmax(logits / 0.7, dim=-1)
    assert (share - expected).abs().max() < 4 * (0.25 / 4000) ** 0.5
    assert choose_tokens(logits[None], 0.7, torch.tensor([1.0 - 1e-17], dtype=torch.float64)).item() == 3


def test_an_unknown_backend_is_refused():
    with pytest.raises(ConfigError, match="no generation backend 'shell'"):
        load_generator("shell")
