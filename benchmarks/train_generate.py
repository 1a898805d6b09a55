"""Training and decoding speed of the executor beside transformers: same weights and rows, one process.

    OMP_NUM_THREADS=1 python benchmarks/train_generate.py [--base DIR] [--tokens N] [--prompts N] [--json]

Times are processor seconds of the process, which another load on the machine disturbs less than wall time.
Each contender runs the same steps in turns; the median step counts. `transformers` is the training loop that
its Trainer and TRL run, without their bookkeeping: padded batches of the same rows, autocast, fused AdamW,
clipping.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig, Qwen3Config

from autosft.evals import read_items
from autosft.executor.generate.answers import DecodePlan, left_pad
from autosft.executor.generate.native_decode import decode_native
from autosft.executor.models.native_qwen3 import NativeQwen3
from autosft.executor.models.shape import Qwen3Shape
from autosft.executor.packing import pack_rows
from autosft.executor.train.adamw import AdamW
from autosft.pool import RowEncoder
from autosft.types import TrainSettings

LAB_SHAPE = {
    "vocab_size": 2368,
    "hidden_size": 128,
    "intermediate_size": 352,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 512,
    "tie_word_embeddings": True,
}


@dataclass
class Step:
    """Rows of one optimiser step."""

    tokens: list[np.ndarray]
    masks: list[np.ndarray]


def make_steps(vocab: int, tokens: int, batch_tokens: int, seed: int = 0) -> list[Step]:
    """Rows like the lab's: 20 to 70 tokens, the second half supervised."""
    rng = np.random.default_rng(seed)
    steps = []
    while sum(sum(map(len, s.tokens)) for s in steps) < tokens:
        rows: list[np.ndarray] = []
        while sum(map(len, rows)) < batch_tokens - 35:
            rows.append(rng.integers(4, vocab, int(rng.integers(20, 71))).astype(np.int32))
        steps.append(Step(rows, [(np.arange(len(r)) >= len(r) // 2).astype(np.uint8) for r in rows]))
    return steps


class Native:
    """The executor's own decoder and optimiser."""

    def __init__(self, shape: Qwen3Shape, state: dict[str, torch.Tensor], dtype: str) -> None:
        self.model = NativeQwen3(shape, getattr(torch, dtype))
        self.model.load_state(state)
        self.optimiser = AdamW(*self.model.optimiser_groups(), TrainSettings())

    def step(self, step: Step) -> float:
        batch = pack_rows(step.tokens, step.masks)
        loss = self.model.token_losses(batch).sum() / batch.n_targets
        loss.backward()
        self.optimiser.step(1e-4)
        return loss.item()


class Transformers:
    """transformers' model in a plain padded training loop."""

    def __init__(self, config: Any, state: dict[str, torch.Tensor], dtype: str) -> None:
        self.model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        self.model.load_state_dict(state, strict=False)
        self.amp = dtype == "bfloat16"
        s = TrainSettings()
        self.optimiser = torch.optim.AdamW(
            self.model.parameters(),
            lr=1e-4,
            betas=(s.beta1, s.beta2),
            weight_decay=s.weight_decay,
            fused=True,
        )

    def step(self, step: Step) -> float:
        width = max(map(len, step.tokens))
        ids = torch.zeros(len(step.tokens), width, dtype=torch.long)
        labels = torch.full_like(ids, -100)
        real = torch.zeros_like(ids)
        for k, (row, mask) in enumerate(zip(step.tokens, step.masks, strict=True)):
            tokens = torch.from_numpy(row.astype(np.int64))
            ids[k, : len(row)], real[k, : len(row)] = tokens, 1
            labels[k, : len(row)] = torch.where(torch.from_numpy(mask.astype(bool)), tokens, -100)
        with torch.autocast("cpu", torch.bfloat16, enabled=self.amp):
            loss = self.model(input_ids=ids, attention_mask=real, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimiser.step()
        self.optimiser.zero_grad()
        return loss.item()


def bench_training(config: Any, state: dict[str, torch.Tensor], tokens: int, dtype: str) -> dict[str, Any]:
    shape = Qwen3Shape.from_config(config.to_dict())
    steps = make_steps(config.vocab_size, tokens, 512)
    contenders = {"autosft": Native(shape, state, dtype), "transformers": Transformers(config, state, dtype)}
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    losses: dict[str, float] = {}
    for number, step in enumerate(steps):
        for name, contender in contenders.items():
            start = time.process_time()
            losses[name] = contender.step(step)
            if number >= 3:
                seconds[name].append(time.process_time() - start)
    per_step = statistics.mean(sum(map(len, s.tokens)) for s in steps)
    rates = {name: per_step / statistics.median(times) for name, times in seconds.items()}
    return {"tokens_per_cpu_s": rates, "ratio": rates["autosft"] / rates["transformers"], "last_loss": losses}


def random_prompts(vocab: int, n: int) -> list[list[int]]:
    """Prompts for a model that never ends a turn: every answer has full length, no row can be dropped."""
    rng = np.random.default_rng(1)
    return [rng.integers(4, vocab, int(rng.integers(10, 40))).tolist() for _ in range(n)]


def suite_prompts(checkpoint: Path, items: Path) -> tuple[list[list[int]], int]:
    """Prompts of an items file as the executor encodes them, and the end-of-turn token."""
    encoder = RowEncoder(checkpoint, 256)
    return [encoder.encode_prompt(item.messages) for item in read_items(items)], encoder.end_of_turn_id


def bench_decoding(
    config: Any,
    state: dict[str, torch.Tensor],
    prompts: list[list[int]],
    stop: int,
    new_tokens: int,
    batch: int,
) -> dict[str, Any]:
    n = len(prompts)
    shape = Qwen3Shape.from_config(config.to_dict())
    native = NativeQwen3(shape, torch.float32)
    native.load_state(state)
    plan = DecodePlan(stop, 0, new_tokens, batch, context=shape.context)
    hf = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    hf.load_state_dict(state, strict=False)

    def run_native() -> list[list[int]]:
        return [list(a.ids) for a in decode_native(native, prompts, plan, lambda done: None)]

    def run_hf(cache: str | None) -> list[list[int]]:
        order = sorted(range(n), key=lambda i: len(prompts[i]))
        result: list[list[int]] = [[] for _ in prompts]
        for first in range(0, n, batch):
            group = order[first : first + batch]
            ids, real = left_pad([prompts[i] for i in group], 0)
            settings = GenerationConfig(
                max_new_tokens=new_tokens,
                do_sample=False,
                eos_token_id=stop,
                pad_token_id=0,
                cache_implementation=cache,
            )
            with torch.inference_mode():
                out = hf.generate(input_ids=ids, attention_mask=real.long(), generation_config=settings)
            for i, text in zip(group, out[:, ids.shape[1] :].tolist(), strict=True):
                result[i] = text[: text.index(stop)] if stop in text else text
        return result

    runs = {"autosft": run_native, "transformers": lambda: run_hf(None)}
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    answers = {}
    for _ in range(3):
        for name, run in runs.items():
            start = time.process_time()
            answers[name] = run()
            seconds[name].append(time.process_time() - start)
    made = sum(map(len, answers["autosft"]))
    rates = {name: made / min(times) for name, times in seconds.items()}
    same = sum(a == b for a, b in zip(answers["autosft"], answers["transformers"], strict=True)) / n
    return {
        "tokens_per_cpu_s": rates,
        "ratio": rates["autosft"] / rates["transformers"],
        "equal_answers": same,
        "batch": batch,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--base", type=Path, help="a Qwen3-shaped base; random weights of the lab's shape if absent"
    )
    parser.add_argument("--tokens", type=int, default=30_000)
    parser.add_argument("--prompts", type=int, default=256)
    parser.add_argument("--new-tokens", type=int, default=64)
    parser.add_argument(
        "--checkpoint", type=Path, help="a trained checkpoint, to decode answers that end by themselves"
    )
    parser.add_argument("--items", type=Path, help="evaluation items (JSONL) for the checkpoint")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    config = AutoConfig.from_pretrained(arguments.base) if arguments.base else Qwen3Config(**LAB_SHAPE)
    if arguments.base:
        model = AutoModelForCausalLM.from_pretrained(arguments.base, dtype=torch.float32)
    else:
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    state = {name: p.detach().clone() for name, p in model.named_parameters()}
    results = {
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        **{f"train {d}": bench_training(config, state, arguments.tokens, d) for d in ("bfloat16", "float32")},
        **{
            f"decode full-length answers, batch {b}": bench_decoding(
                config,
                state,
                random_prompts(config.vocab_size, arguments.prompts),
                1,
                arguments.new_tokens,
                b,
            )
            for b in (32, 128)
        },
    }
    if arguments.checkpoint and arguments.items:
        model = AutoModelForCausalLM.from_pretrained(arguments.checkpoint, dtype=torch.float32)
        state = {name: p.detach().clone() for name, p in model.named_parameters()}
        prompts, stop = suite_prompts(arguments.checkpoint, arguments.items)
        for b in (32, 128):
            results[f"decode the suite, batch {b}"] = bench_decoding(
                model.config, state, prompts, stop, arguments.new_tokens, b
            )
    if arguments.json:
        print(json.dumps(results, indent=2))
        return
    for name, result in results.items():
        if not isinstance(result, dict):
            print(f"{name}: {result}")
            continue
        rates = ", ".join(f"{k} {v:,.0f} tok/cpu-s" for k, v in result["tokens_per_cpu_s"].items())
        rest = {k: v for k, v in result.items() if k not in ("tokens_per_cpu_s", "ratio")}
        print(f"{name}: {rates}; ratio {result['ratio']:.2f}; {rest}")


if __name__ == "__main__":
    main()
