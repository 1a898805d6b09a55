"""What counts as a base, and what changes its fingerprint."""

from __future__ import annotations

import json
import shutil

import pytest

from autosft.errors import BaseFingerprintError, BaseModelError
from autosft.executor.base import base_fingerprint, check_base, verify_fingerprint
from tests.executor.worlds import write_base


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return write_base(tmp_path_factory.mktemp("base") / "base")


@pytest.fixture
def base(original, tmp_path):
    return shutil.copytree(original, tmp_path / "base")


def test_a_good_base_is_described(base):
    info = check_base(base)
    assert (info.model_type, info.native, info.vocab, info.context, info.dtype) == (
        "qwen3",
        True,
        448,
        256,
        "bfloat16",
    )
    assert [f.name for f in info.weights] == ["model.safetensors"]


def test_fingerprint_follows_content_not_place(base, original):
    assert base_fingerprint(base) == base_fingerprint(original)
    (base / "README.md").write_text("notes")
    assert base_fingerprint(base) == base_fingerprint(original)


@pytest.mark.parametrize(
    "name", ["model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json"]
)
def test_one_changed_byte_changes_the_fingerprint(base, original, name):
    content = bytearray((base / name).read_bytes())
    # A space inside JSON, a bit in the last weight: both keep the file loadable.
    if name.endswith(".json"):
        content[-1:] = b" " + content[-1:]
    else:
        content[-1] ^= 1
    (base / name).write_bytes(bytes(content))
    assert base_fingerprint(base) != base_fingerprint(original)
    with pytest.raises(BaseFingerprintError, match="the campaign trains from"):
        verify_fingerprint(base, base_fingerprint(original))


def edit_config(base, **changes):
    config = json.loads((base / "config.json").read_text())
    config.update(changes)
    (base / "config.json").write_text(json.dumps({k: v for k, v in config.items() if v is not None}))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (shutil.rmtree, "no such folder"),
        (lambda b: (b / "config.json").unlink(), r"no config\.json"),
        (lambda b: (b / "config.json").write_text("{"), r"config\.json cannot be read"),
        (lambda b: (b / "config.json").write_text("[]"), "names no model_type"),
        (lambda b: edit_config(b, num_attention_heads=None), "incomplete"),
        (lambda b: edit_config(b, model_type="bert"), "weights are of a Qwen3ForCausalLM"),
        (
            lambda b: edit_config(b, model_type="bert", architectures=["BertForMaskedLM"]),
            "give a BertLMHeadModel",
        ),
        (lambda b: edit_config(b, model_type="t5"), "not a causal language model"),
        (lambda b: (b / "model.safetensors").unlink(), "has no weights"),
        (lambda b: (b / "model.safetensors").write_bytes(b"x"), "not a readable safetensors"),
        (lambda b: (b / "model.safetensors").write_bytes(b"\xff" * 64), "not a readable safetensors"),
        (lambda b: truncate(b / "model.safetensors"), "its header says"),
        (lambda b: (b / "tokenizer.json").unlink(), "no tokenizer"),
    ],
)
def test_an_unusable_base_is_named(base, damage, message):
    damage(base)
    with pytest.raises(BaseModelError, match=message) as caught:
        check_base(base)
    assert "base" in str(caught.value)


def truncate(path):
    path.write_bytes(path.read_bytes()[:-100])


def test_a_missing_shard_is_named(base):
    (base / "model.safetensors").rename(base / "part-1.safetensors")
    index = {"weight_map": {"a": "part-1.safetensors", "b": "part-2.safetensors"}}
    (base / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(BaseModelError, match=r"part-2\.safetensors: a weight file of the index is missing"):
        check_base(base)


def test_a_qwen3_the_native_decoder_cannot_represent_goes_to_transformers(base):
    edit_config(base, attention_bias=True)
    assert not check_base(base).native
