"""The shipped base: checked on load, loadable by transformers, with a template whose loss mask is exact."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from autosft.errors import BaseModelError
from autosft.lab.base import ASSET_DIR, CHECKSUMS, base_dir, check_base, write_checksums
from autosft.lab.corpus import ALL_WORDS
from autosft.lab.pool import make_pool
from autosft.lab.tokenizer import TURN_END
from autosft.pool import RowEncoder, new_row


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(ASSET_DIR, tmp_path / "base"))


def damage(folder: Path) -> None:
    content = bytearray((folder / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (folder / "model.safetensors").write_bytes(content)


def test_shipped_base_matches_its_checksums_and_is_small() -> None:
    assert base_dir() == ASSET_DIR
    names = {p.name for p in ASSET_DIR.iterdir()}
    assert names >= {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
    assert names >= {"generation_config.json", CHECKSUMS}
    assert sum(p.stat().st_size for p in ASSET_DIR.iterdir()) < 3_000_000


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (damage, "model.safetensors"),
        (lambda d: (d / "tokenizer.json").unlink(), "tokenizer.json"),
        (lambda d: (d / "adapter.bin").write_bytes(b"x"), "adapter.bin"),
        (lambda d: (d / CHECKSUMS).unlink(), CHECKSUMS),
        (lambda d: (d / CHECKSUMS).write_text(""), "config.json"),
    ],
)
def test_a_changed_base_is_refused(copy: Path, spoil: Callable[[Path], object], named: str) -> None:
    check_base(copy)
    spoil(copy)
    with pytest.raises(BaseModelError, match=named):
        check_base(copy)


def test_checksums_can_be_written_anew(copy: Path) -> None:
    damage(copy)
    write_checksums(copy)
    check_base(copy)


def test_transformers_loads_it() -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(base_dir())
    assert model.config.model_type == "qwen3"
    assert 1_000_000 < sum(p.numel() for p in model.parameters()) < 1_100_000
    assert model.get_input_embeddings().weight is model.get_output_embeddings().weight
    tokenizer = AutoTokenizer.from_pretrained(base_dir())
    end = tokenizer.convert_tokens_to_ids(TURN_END)
    assert tokenizer.eos_token == TURN_END
    assert model.generation_config.eos_token_id == end
    assert model.config.max_position_embeddings == 512
    assert len(tokenizer) <= model.config.vocab_size
    stored = json.loads((base_dir() / "generation_config.json").read_text())
    assert stored["eos_token_id"] == end


def test_template_marks_responses_and_their_end() -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(base_dir())
    turns = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "Bye"},
        {"role": "assistant", "content": "So long."},
    ]
    out = tokenizer.apply_chat_template(
        turns, return_assistant_tokens_mask=True, return_dict=True, tokenize=True
    )
    marked = [i for i, m in zip(out["input_ids"], out["assistant_masks"], strict=True) if m]
    assert tokenizer.decode(marked) == "Hello.<|end|>So long.<|end|>"
    text = tokenizer.apply_chat_template(turns[:2], tokenize=False, add_generation_prompt=True)
    assert text == "<|system|>Be kind.<|user|>Hi<|assistant|>"


def test_encoder_masks_exactly_the_response() -> None:
    encoder = RowEncoder(base_dir(), 256)
    row = new_row(
        "s", [("user", "Where is the fox? Write in all caps."), ("assistant", "THE FOX IS IN THE BARN.")]
    )
    encoded = encoder.encode(row)
    said = [int(i) for i, m in zip(encoded.ids, encoded.loss_mask, strict=True) if m]
    assert encoder.decode(said[:-1]) == "THE FOX IS IN THE BARN."
    assert said[-1] == encoder.end_of_turn_id
    prompt = encoder.encode_prompt(row.messages[:1])
    assert encoded.ids[: len(prompt)].tolist() == list(prompt)


def test_rows_fit_the_sequence_and_the_generation_limit() -> None:
    encoder = RowEncoder(base_dir(), 256)
    pool, _ = make_pool(rows=1500, seed=3)
    n_tokens, loss_tokens = encoder.counts(pool)
    assert n_tokens.max() < 128
    assert loss_tokens.max() < 64


def test_every_word_is_one_token_inside_a_text() -> None:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(base_dir() / "tokenizer.json"))
    assert [word for word in ALL_WORDS if len(tokenizer.encode(f" {word}").ids) != 1] == []
    # Round trip of whatever else people may type.
    for text in ("Größe 12 €", "a\tb\n\n  c", "\u200b🦊", "<<T>> ****** [x]"):
        assert tokenizer.decode(tokenizer.encode(text).ids, skip_special_tokens=False) == text
