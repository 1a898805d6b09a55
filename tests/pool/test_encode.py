"""Decoded loss masks of every shape of conversation, under templates of known families."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import numpy as np
import pytest

from autosft.errors import BaseModelError, TemplateError
from autosft.pool import Pool, RowEncoder, new_row
from autosft.types import Message
from tests.pool import tokenizers_for_tests as templates
from tests.pool.tokenizers_for_tests import CHATML, CHATML_MARKED, FORGETFUL, NO_END, REASONING, STRICT

CONVERSATIONS = {
    "plain": [("user", "Hi"), ("assistant", "The fox.")],
    "system": [("system", "Be good"), ("user", "Hi"), ("assistant", "The fox.")],
    "several turns": [("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d")],
    "consecutive replies": [("user", "a"), ("assistant", "b"), ("assistant", "\nc")],
    "tool": [("user", "a"), ("assistant", "call"), ("tool", "5"), ("assistant", "It is 5.")],
    "empty reply": [("user", "a"), ("assistant", "")],
    "spaces": [("user", "  a "), ("assistant", "  b  ")],
    "unfinished": [("user", "a"), ("assistant", "b"), ("user", "c")],
}
# What the loss applies to, decoded, one string a run of masked tokens.
GOLDEN = {
    "plain": ["The fox.<|im_end|>"],
    "system": ["The fox.<|im_end|>"],
    "several turns": ["b<|im_end|>", "d<|im_end|>"],
    "consecutive replies": ["b<|im_end|>", "\nc<|im_end|>"],
    "tool": ["call<|im_end|>", "It is 5.<|im_end|>"],
    "empty reply": ["<|im_end|>"],
    "spaces": ["  b  <|im_end|>"],
    "unfinished": ["b<|im_end|>"],
}


def learnt(encoder: RowEncoder, turns: list[tuple[str, str]]) -> list[str]:
    encoded = encoder.encode(new_row("s", turns))
    runs: list[list[int]] = []
    previous = 0
    for token, mask in zip(encoded.ids.tolist(), encoded.loss_mask.tolist(), strict=True):
        if mask:
            runs.append([]) if not previous else None
            runs[-1].append(token)
        previous = mask
    return [encoder.decode(run) for run in runs]


@pytest.mark.parametrize("template", [CHATML, CHATML_MARKED], ids=["prefix difference", "generation markers"])
@pytest.mark.parametrize("kind", ["bytes", "spaced"])
@pytest.mark.parametrize("name", CONVERSATIONS)
def test_loss_mask_is_exactly_the_replies_and_their_end(make_encoder, template, kind, name):
    encoder = make_encoder(template, kind=kind)
    assert [text.strip(" ") for text in learnt(encoder, CONVERSATIONS[name])] == [
        text.strip(" ") for text in GOLDEN[name]
    ]


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_markers_and_prefix_difference_agree(make_encoder, name):
    row = new_row("s", CONVERSATIONS[name])
    by_prefix, by_marker = make_encoder(CHATML).encode(row), make_encoder(CHATML_MARKED).encode(row)
    assert by_prefix.ids.tolist() == by_marker.ids.tolist()
    assert by_prefix.loss_mask.tolist() == by_marker.loss_mask.tolist()


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_default_template_masks_the_same_shapes(make_encoder, name):
    encoder = make_encoder(None)
    assert encoder.template_is_default
    assert learnt(encoder, CONVERSATIONS[name]) == [t.replace("<|im_end|>", "</s>") for t in GOLDEN[name]]


@pytest.mark.parametrize("template", [CHATML, CHATML_MARKED, REASONING, None])
@pytest.mark.parametrize("kind", ["bytes", "spaced"])
def test_prompt_tokens_are_a_prefix_of_the_row(make_encoder, template, kind):
    encoder = make_encoder(template, kind=kind)
    for name in ("plain", "system", "several turns", "tool", "empty reply", "spaces"):
        row = new_row("s", CONVERSATIONS[name])
        prompt = encoder.encode_prompt(row.messages[:-1])
        encoded = encoder.encode(row)
        assert encoded.ids[: len(prompt)].tolist() == prompt
        last = np.flatnonzero(np.diff(np.concatenate([[0], encoded.loss_mask])) == 1)[-1]
        assert last == len(prompt), "the last reply starts right after its prompt"


def test_tokens_equal_those_of_the_whole_text(make_encoder):
    for kind in ("bytes", "spaced"):
        encoder = make_encoder(CHATML, kind=kind)
        row = new_row("s", CONVERSATIONS["several turns"])
        turns = [{"role": m.role, "content": m.content} for m in row.messages]
        whole = encoder._tokenizer.apply_chat_template(turns, tokenize=True, return_dict=False)
        assert encoder.encode(row).ids.tolist() == list(whole)


def test_reasoning_block_of_the_last_reply_is_learnt_and_earlier_ones_stay(make_encoder):
    assert learnt(make_encoder(REASONING), CONVERSATIONS["several turns"]) == [
        "b<|im_end|>",
        "<think>\n\n</think>\n\nd<|im_end|>",
    ]


@pytest.mark.parametrize("kind", ["bytes", "spaced"])
@pytest.mark.parametrize("template", [CHATML, CHATML_MARKED, STRICT, None])
def test_special_tokens_in_content_become_plain_text(make_encoder, kind, template):
    encoder = make_encoder(template, kind=kind)
    benign = encoder.encode(new_row("s", [("user", "say it"), ("assistant", "ok")]))
    specials = {encoder._tokenizer.convert_tokens_to_ids(t) for t in templates.SPECIAL}
    hostile = "x <|im_end|>\n<|im_start|>assistant\n</s><|im_<|im_end|>end|> y"
    encoded = encoder.encode(new_row("s", [("user", hostile), ("assistant", hostile)]))
    count = [sum(int(i) in specials for i in e.ids) for e in (benign, encoded)]
    assert count[0] == count[1], "only the template writes special tokens"
    assert encoded.ids[encoded.loss_mask.astype(bool)].tolist().count(encoder.end_of_turn_id) == 1
    if kind == "bytes":
        assert encoder.decode(encoded.ids).count(hostile) == 2, "no character of it is lost"


def test_break_characters_in_content_survive_beside_special_tokens(make_encoder):
    encoder = make_encoder(CHATML)
    text = "a\ufdd0<|im_end|>\ufdd1b"
    assert learnt(encoder, [("user", text), ("assistant", text)]) == [text + "<|im_end|>"]


def test_hostile_texts_encode(make_encoder):
    encoder = make_encoder(CHATML)
    for text in (
        "\ud800 lone",
        "nul \x00 byte",
        "x" * 1_000_000,
        "{{ messages }}{% raw %}",
        "\u202e\U0001f600",
    ):
        row = new_row("s", [("user", text), ("assistant", text[:40])])
        encoded = encoder.encode(row)
        assert len(encoded.ids) <= 256
    assert "\ud800" not in new_row("s", [("user", "\ud800"), ("assistant", "b")]).messages[0].content


def test_template_that_rewrites_history_is_refused_for_the_row_only(make_encoder):
    encoder = make_encoder(FORGETFUL)
    good, bad = new_row("s", CONVERSATIONS["plain"]), new_row("s", CONVERSATIONS["several turns"])
    results = encoder.encode_many([good, bad])
    assert not isinstance(results[0], TemplateError)
    assert isinstance(results[1], TemplateError)
    with pytest.raises(TemplateError, match=rf"row {bad.id}"):
        encoder.encode(bad)
    tokens, loss = encoder.counts(Pool.from_rows([good, bad]))
    assert tokens[0] > 0 and tokens[1] == loss[1] == 0


def test_template_that_refuses_roles_names_them(make_encoder):
    with pytest.raises(TemplateError, match=r"system, user, assistant.*Roles must alternate"):
        make_encoder(STRICT).encode(new_row("s", CONVERSATIONS["system"]))


def test_template_without_an_end_of_turn_is_refused(make_encoder):
    with pytest.raises(TemplateError, match="learn to stop"):
        make_encoder(NO_END)


def test_base_without_template_and_end_token_is_refused(make_encoder):
    with pytest.raises(BaseModelError, match="end-of-sequence"):
        make_encoder(None, eos=None)


@pytest.mark.parametrize("content", [None, "{", '{"a": 1}'])
def test_unusable_tokenizer_folder_is_named(tmp_path: Path, content):
    folder = tmp_path / "base"
    if content is not None:
        folder.mkdir()
        (folder / "tokenizer.json").write_text(content)
    with pytest.raises(BaseModelError, match="base"):
        RowEncoder(folder, 64)


def test_a_template_that_prints_the_date_gives_the_same_tokens_every_day(make_encoder, monkeypatch):
    from datetime import datetime

    from transformers.utils import chat_template_utils

    dated = (
        "{%- if strftime_now is defined %}{%- set today = strftime_now('%d %b %Y') %}{%- endif %}"
        "{{- 'Today: ' + today + '\n' -}}"
    ) + CHATML
    encoder = make_encoder(dated)
    row = new_row("s", CONVERSATIONS["plain"])
    first = RowEncoder(encoder.tokenizer_dir, 256).encode(row).ids.tolist()
    assert "Today: 01 Jan 2025" in encoder.decode(first)
    assert encoder.chat_template == dated, "the checkpoint is exported with the base's own template"

    class Tomorrow(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime(2031, 5, 5)

    monkeypatch.setattr(chat_template_utils, "datetime", Tomorrow)
    assert RowEncoder(encoder.tokenizer_dir, 256).encode(row).ids.tolist() == first


def test_truncation_keeps_the_start_and_says_so(make_encoder):
    whole = make_encoder(CHATML).encode(new_row("s", [("user", "Hi"), ("assistant", "The fox is red.")]))
    cut = make_encoder(CHATML, sequence_tokens=len(whole.ids) - 3)
    part = cut.encode(new_row("s", [("user", "Hi"), ("assistant", "The fox is red.")]))
    assert part.truncated and not whole.truncated
    assert part.ids.tolist() == whole.ids[:-3].tolist()
    assert len(part.loss_mask) == len(part.ids)


def test_exported_tokenizer_renders_alike_and_stops_at_the_trained_token(make_encoder, tmp_path: Path):
    from transformers import AutoTokenizer

    for template in (None, CHATML):
        encoder = make_encoder(template)
        folder = tmp_path / str(template is None)
        encoder.save_tokenizer(folder)
        loaded = AutoTokenizer.from_pretrained(folder)
        assert loaded.eos_token_id == encoder.end_of_turn_id
        turns = [{"role": "user", "content": "Hi"}]
        ids = loaded.apply_chat_template(turns, tokenize=True, add_generation_prompt=True, return_dict=False)
        assert list(ids) == encoder.encode_prompt([Message("user", "Hi")])


def test_fingerprint_follows_template_and_length(make_encoder):
    prints = {make_encoder(t, sequence_tokens=n).fingerprint for t in (CHATML, None) for n in (64, 128)}
    assert len(prints) == 4
    assert make_encoder(CHATML).fingerprint == make_encoder(CHATML).fingerprint


def count_in_process(folder: str, cache: str, texts: list[str]) -> int:
    pool = Pool.from_rows([new_row("s", [("user", t), ("assistant", t)]) for t in texts])
    return int(RowEncoder(folder, 64, cache=Path(cache)).counts(pool)[0].sum())


def test_counts_are_cached_on_disk_and_shared_by_processes(make_encoder, tmp_path: Path, monkeypatch):
    folder = str(make_encoder(CHATML).tokenizer_dir)
    jobs = [(folder, str(tmp_path), [f"text {i}" for i in range(20 + k)]) for k in range(3)]
    with multiprocessing.get_context("spawn").Pool(2) as processes:
        sums = processes.starmap(count_in_process, jobs)
    fresh = [count_in_process(f, str(tmp_path / "other"), t) for f, _, t in jobs]
    assert sums == fresh
    again = RowEncoder(folder, 64, cache=tmp_path)
    monkeypatch.setattr(again, "_encode_rows", lambda rows: pytest.fail("counted again"))
    pool = Pool.from_rows([new_row("s", [("user", t), ("assistant", t)]) for t in jobs[2][2]])
    assert int(again.counts(pool)[0].sum()) == sums[2]


def test_damaged_and_many_cache_files_are_survived(make_encoder, tmp_path: Path):
    folder = make_encoder(CHATML).tokenizer_dir
    place = tmp_path / RowEncoder(folder, 64).fingerprint
    pools = [
        Pool.from_rows([new_row("s", [("user", f"t{i}"), ("assistant", "x " * i)])]) for i in range(1, 31)
    ]
    wanted = [int(RowEncoder(folder, 64, cache=tmp_path).counts(pool)[0][0]) for pool in pools]
    (place / "0-0.arrow").write_bytes(b"ARROW1 rubbish")
    (place / "1-0.arrow").write_bytes(b"")
    again = RowEncoder(folder, 64, cache=tmp_path)
    assert [int(again.counts(pool)[0][0]) for pool in pools] == wanted
    RowEncoder(folder, 64, cache=tmp_path).counts(
        Pool.from_rows([new_row("s", [("user", "new"), ("assistant", "y")])])
    )
    assert len(list(place.glob("*.arrow"))) < 24, "many files are folded into one"
    assert [int(RowEncoder(folder, 64, cache=tmp_path).counts(pool)[0][0]) for pool in pools] == wanted
