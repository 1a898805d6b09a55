"""Small real bases and builds for the executor's tests: random weights, hand-laid plans."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from autosft.artifacts import Artifact, ArtifactStore
from autosft.evals import write_items
from autosft.types import EvalItem, Message, Requirement

TEMPLATE = (
    "{%- for m in messages -%}{{- '<|' + m['role'] + '|>' + m['content'] -}}"
    "{%- if m['role'] == 'assistant' -%}{{- '<|end|>' -}}{%- endif -%}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}"
)
SPECIAL = ["<|pad|>", "<|sep|>", "<|end|>", "<|user|>", "<|assistant|>", "<|system|>"]
WORDS = [
    "fox",
    "owl",
    "elm",
    "red",
    "blue",
    "tall",
    "runs",
    "sleeps",
    "near",
    "under",
    "green",
    "hill",
    "lake",
    "moss",
]


def write_tokenizer(folder: Path, *, template: str | None = TEMPLATE) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=SPECIAL, initial_alphabet=alphabet)
    tokenizer.train_from_iterator([" ".join(WORDS), " ".join(w.upper() for w in WORDS)] * 20, trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "<|pad|>", "eos_token": "<|sep|>"}
    if template is not None:
        settings["chat_template"] = template
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")


def small_config(kind: str, *, vocab: int = 448, hidden: int = 64, layers: int = 2, tied: bool = True):
    """A transformers configuration of a small model of some family."""
    import transformers

    shared = {
        "vocab_size": vocab,
        "hidden_size": hidden,
        "intermediate_size": 2 * hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 256,
        "tie_word_embeddings": tied,
    }
    if kind == "qwen3":
        return transformers.Qwen3Config(**shared, head_dim=16)
    if kind == "llama":
        return transformers.LlamaConfig(**shared)
    if kind == "qwen2":
        return transformers.Qwen2Config(**shared)
    if kind == "gpt2":
        return transformers.GPT2Config(
            vocab_size=vocab,
            n_embd=hidden,
            n_layer=layers,
            n_head=4,
            n_positions=256,
            bos_token_id=1,
            eos_token_id=1,
        )
    if kind == "mamba":
        return transformers.MambaConfig(
            vocab_size=vocab, hidden_size=hidden, num_hidden_layers=layers, state_size=8, use_mambapy=False
        )
    raise ValueError(kind)


def small_model(kind: str, *, seed: int = 0, **sizes):
    """A random model whose norms and biases are not at their neutral start values, so that mistakes show."""
    import torch
    from transformers import AutoModelForCausalLM

    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(small_config(kind, **sizes)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.1 * torch.randn_like(parameter))
            else:
                parameter.mul_(3.0)
    return model


def write_base(
    folder: Path, kind: str = "qwen3", *, dtype: str = "bfloat16", template=TEMPLATE, neutral=False, **sizes
):
    """Write a base; `neutral` keeps the initial weights, from which training goes well."""
    import torch
    from transformers import AutoModelForCausalLM

    write_tokenizer(folder, template=template)
    if neutral:
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(small_config(kind, **sizes))
    else:
        model = small_model(kind, **sizes)
    model.to(getattr(torch, dtype)).save_pretrained(folder)
    return folder


def upper_rows(n: int, seed: int = 0) -> list[tuple[str, str, str]]:
    """(source, prompt, response): repeat a few words in upper case, or as they stand."""
    rng = np.random.default_rng(seed)
    rows = []
    for k in range(n):
        words = " ".join(rng.choice(WORDS, int(rng.integers(1, 6))))
        source = ("loud", "plain")[k % 2]
        rows.append((source, f"{source}: {words}", words.upper() if source == "loud" else words))
    return rows


def write_build(
    store: ArtifactStore,
    base: Path,
    *,
    rows: int = 80,
    steps: int = 10,
    batch_tokens: int = 160,
    sequence_tokens: int = 64,
    seeds: tuple[int, ...] = (0,),
    key: str = "build0",
    promise: bool = True,
) -> Artifact:
    """Lay a build out by hand, in the contract's layout."""
    tokenizer = Tokenizer.from_file(str(base / "tokenizer.json"))
    data = upper_rows(rows)
    tokens, masks = [], []
    for _, prompt, response in data:
        head = tokenizer.encode(f"<|user|>{prompt}<|assistant|>").ids
        tail = tokenizer.encode(f"{response}<|end|>").ids
        tokens.append(head + tail)
        masks.append([0] * len(head) + [1] * len(tail))
    lengths = np.array([len(t) for t in tokens])
    table = pa.table(
        {
            "id": [f"row{k:04d}" for k in range(rows)],
            "source": [source for source, _, _ in data],
            "leaf": pa.array(
                [f"case/{s}" if k % 5 else None for k, (s, _, _) in enumerate(data)], pa.string()
            ),
        }
    )
    plans = {}
    with store.create("build", key) as step:
        pq.write_table(table, step.path / "rows.parquet")
        np.save(step.path / "tokens.npy", np.concatenate(tokens).astype(np.int32))
        np.save(step.path / "mask.npy", np.concatenate(masks).astype(np.uint8))
        np.save(step.path / "offsets.npy", np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))
        for seed in seeds:
            order, step_starts, sequence_starts = lay_plan(
                lengths, seed, steps, batch_tokens, sequence_tokens
            )
            np.savez(
                step.path / f"plan-{seed}.npz",
                rows=order,
                step_starts=step_starts,
                sequence_starts=sequence_starts,
            )
            plans[str(seed)] = {
                "train_tokens": int(lengths[order].sum()),
                "loss_tokens": int(sum(sum(masks[r]) for r in order)),
                "steps": len(step_starts) - 1,
            }
        step.data = {"plans": plans if promise else {}}
    return store.load("build", key)


def lay_plan(lengths, seed, steps, batch_tokens, sequence_tokens):
    rng = np.random.default_rng(seed)
    order, step_starts, sequence_starts = [], [0], []
    queue = []
    for _ in range(steps):
        total, room = 0, 0
        while total < batch_tokens:
            queue = queue or rng.permutation(len(lengths)).tolist()
            row = queue.pop(0)
            if lengths[row] > room:
                sequence_starts.append(len(order))
                room = sequence_tokens
            room -= lengths[row]
            total += lengths[row]
            order.append(row)
        step_starts.append(len(order))
    return np.array(order, np.int32), np.array(step_starts, np.int64), np.array(sequence_starts, np.int64)


def write_suite(path: Path, n: int = 12) -> Path:
    """Evaluation items that any text can fail or pass: only lower case letters."""
    items = [
        EvalItem(
            id=f"item{k}",
            suite="case",
            messages=(Message("user", f"{source}: {prompt.split(': ')[1]}"),),
            requirements=(Requirement("change_case:english_lowercase"),),
            leaf="lower",
        )
        for k, (source, prompt, _) in enumerate(upper_rows(n, seed=9))
    ]
    write_items(items, path)
    return path
