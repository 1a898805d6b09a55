"""A checkpoint as others load it."""

from __future__ import annotations

import json

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

from autosft.artifacts import ArtifactStore
from autosft.errors import BaseModelError
from autosft.executor.base import check_base
from autosft.executor.convert import convert
from autosft.executor.models import load_model
from autosft.executor.prompts import make_prompts, read_prompts
from tests.executor.worlds import write_base, write_suite


def make(tmp_path, kind="qwen3", **base_settings):
    """Convert weights that differ from the base's; return (checkpoint, weights, prompts)."""
    from safetensors.torch import save_file

    base = check_base(write_base(tmp_path / "base", kind, **base_settings))
    model = load_model(base, "float32")
    torch.manual_seed(1)
    state = {n: (p + 0.02 * torch.randn_like(p)).contiguous() for n, p in model.state().items()}
    save_file(state, tmp_path / "model.safetensors")
    items = write_suite(tmp_path / "items.jsonl")
    prompts = read_prompts(make_prompts(base.path, items, 64, ArtifactStore(tmp_path / "store")))
    facts = convert(base, tmp_path / "model.safetensors", prompts, tmp_path / "checkpoint")
    return tmp_path / "checkpoint", state, prompts, facts


@pytest.mark.parametrize("kind", ["qwen3", "llama", "gpt2"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_transformers_loads_equal_logits(tmp_path, kind, dtype):
    folder, state, _, facts = make(tmp_path, kind, dtype=dtype)
    stored = AutoModelForCausalLM.from_pretrained(folder, dtype="auto")
    assert stored.dtype == getattr(torch, dtype)
    assert facts["dtype"] == dtype
    for name, parameter in stored.named_parameters():
        assert torch.equal(parameter, state[name].to(stored.dtype)), name
    ids = torch.randint(0, 448, (2, 20))
    model = stored.float().eval()
    with torch.no_grad():
        expected = model(input_ids=ids).logits
    if kind == "qwen3":
        found = load_model(check_base(folder), "float32").logits(ids)
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", ["qwen3", "gpt2"])
def test_the_end_of_turn_is_the_stop_everywhere(tmp_path, kind):
    folder, _, prompts, _ = make(tmp_path, kind)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    end = tokenizer.convert_tokens_to_ids("<|end|>")
    assert prompts.end_of_turn_id == end != tokenizer.convert_tokens_to_ids("<|sep|>")
    assert tokenizer.eos_token_id == end
    assert json.loads((folder / "config.json").read_text())["eos_token_id"] == end
    generation = GenerationConfig.from_pretrained(folder)
    assert generation.eos_token_id == end
    assert generation.do_sample is False
    assert AutoModelForCausalLM.from_pretrained(folder).generation_config.eos_token_id == end


def test_the_prompts_are_those_of_the_checkpoints_own_template(tmp_path):
    folder, _, prompts, _ = make(tmp_path)
    from autosft.evals import read_items

    tokenizer = AutoTokenizer.from_pretrained(folder)
    for item, tokens in zip(read_items(tmp_path / "items.jsonl"), prompts.tokens, strict=True):
        turns = [{"role": m.role, "content": m.content} for m in item.messages]
        text = tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
        assert tokenizer(text, add_special_tokens=False).input_ids == tokens


def test_a_base_without_template_gets_the_default_one_and_ends_on_its_eos(tmp_path):
    folder, _, prompts, _ = make(tmp_path, template=None)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert prompts.end_of_turn_id == tokenizer.convert_tokens_to_ids("<|sep|>") == tokenizer.eos_token_id
    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": "hi"}], add_generation_prompt=True, tokenize=False
    )
    assert text == "User:\nhi\nAssistant:\n"


def test_weights_of_another_model_are_refused(tmp_path):
    from safetensors.torch import save_file

    folder, state, prompts, _ = make(tmp_path, "llama")
    del folder
    state.pop("model.norm.weight")
    save_file(state, tmp_path / "odd.safetensors")
    with pytest.raises(BaseModelError, match=r"do not belong to the base.*model\.norm\.weight"):
        convert(check_base(tmp_path / "base"), tmp_path / "odd.safetensors", prompts, tmp_path / "other")


def test_prompts_are_made_once(tmp_path):
    base = write_base(tmp_path / "base")
    items = write_suite(tmp_path / "items.jsonl")
    store = ArtifactStore(tmp_path / "store")
    first = make_prompts(base, items, 64, store)
    assert make_prompts(base, items, 64, store).path == first.path
    write_suite(tmp_path / "items.jsonl", n=13)
    second = make_prompts(base, items, 64, store)
    assert second.fingerprint != first.fingerprint
    assert len(read_prompts(second).ids) == 13


@pytest.mark.parametrize("kind", ["qwen3", "llama"])
def test_large_checkpoints_are_several_files_that_load(tmp_path, monkeypatch, kind):
    monkeypatch.setattr("autosft.executor.convert.SHARD_BYTES", 100_000)
    folder, state, _, _ = make(tmp_path, kind, dtype="float32")
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    assert len(set(index["weight_map"].values())) > 1
    assert not (folder / "model.safetensors").exists()
    stored = AutoModelForCausalLM.from_pretrained(folder, dtype="auto")
    for name, parameter in stored.named_parameters():
        assert torch.equal(parameter, state[name]), name
    assert len(check_base(folder).weights) == len(set(index["weight_map"].values()))
