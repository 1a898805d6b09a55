# ruff: noqa: E501
"""Small real tokenizers with the chat templates of known families, written as Hugging Face folders."""

from __future__ import annotations

import json
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

CHATML = (
    "{%- for m in messages %}{{- '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' -}}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' -}}{%- endif %}"
)
CHATML_MARKED = (
    "{%- for m in messages %}{{- '<|im_start|>' + m['role'] + '\n' -}}"
    "{%- if m['role'] == 'assistant' %}{% generation %}{{- m['content'] + '<|im_end|>' -}}{% endgeneration %}{{- '\n' -}}"
    "{%- else %}{{- m['content'] + '<|im_end|>\n' -}}{%- endif %}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' -}}{%- endif %}"
)
# Like Qwen3: the last reply gets an empty reasoning block, earlier ones do not; content is stripped.
REASONING = (
    "{%- for m in messages %}{{- '<|im_start|>' + m['role'] + '\n' -}}"
    "{%- if m['role'] == 'assistant' and loop.last %}{{- '<think>\n\n</think>\n\n' -}}{%- endif %}"
    "{{- m['content'] | trim + '<|im_end|>\n' -}}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' -}}{%- endif %}"
)
STRICT = (
    "{%- for m in messages %}{%- if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{- raise_exception('Roles must alternate') -}}{%- endif %}"
    "{%- if m['role'] == 'user' %}{{- '[INST] ' + m['content'] + ' [/INST]' -}}"
    "{%- else %}{{- ' ' + m['content'] + eos_token -}}{%- endif %}{%- endfor %}"
)
NO_END = "{%- for m in messages %}{{- m['role'] + ': ' + m['content'] + '\n' -}}{%- endfor %}"
# Drops all but the last exchange: earlier replies vanish and no exact mask exists.
FORGETFUL = (
    "{%- for m in messages[-2:] %}{{- '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' -}}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' -}}{%- endif %}"
)
SPECIAL = ["<|pad|>", "</s>", "<|im_start|>", "<|im_end|>"]


def write_tokenizer(
    folder: Path, template: str | None, *, kind: str = "bytes", eos: str | None = "</s>"
) -> Path:
    """Train a tokenizer on a few sentences and write it; `kind`: bytes (GPT-2 style) or spaced (SentencePiece style)."""
    corpus = [
        "The fox is red. The owl is in the forest.\n",
        "Use only lowercase letters, please.\n\nAnswer: yes.\n",
    ] * 30
    if kind == "bytes":
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(vocab_size=420, special_tokens=SPECIAL, initial_alphabet=alphabet)
    else:
        tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
        tokenizer.decoder = decoders.Sequence(
            [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
        )
        pieces = [f"<0x{byte:02X}>" for byte in range(256)]
        trainer = trainers.BpeTrainer(vocab_size=700, special_tokens=["<unk>", *SPECIAL, *pieces])
    tokenizer.train_from_iterator(corpus, trainer)
    folder.mkdir(parents=True, exist_ok=True)
    data = json.loads(tokenizer.to_str())
    data["added_tokens"] = [t for t in data["added_tokens"] if not t["content"].startswith("<0x")]
    (folder / "tokenizer.json").write_text(json.dumps(data), encoding="utf-8")
    settings: dict[str, object] = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "<|pad|>"}
    if eos:
        settings["eos_token"] = eos
    if template is not None:
        settings["chat_template"] = template
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return folder
