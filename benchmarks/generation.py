"""Greedy answers to the lab's suite: autosft beside transformers' `generate` and vLLM, same prompts and
weights.

    OMP_NUM_THREADS=1 python benchmarks/generation.py [--checkpoint DIR] [--vllm PYTHON] [--prompts-per-leaf
    60]

Loading the model and starting engines are left out for all; each answers once before the clock starts. vLLM
runs in the environment of `--vllm` (scripts/set_up_vllm.sh) with its own threads on the same cores.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from autosft.artifacts import ArtifactStore
from autosft.evals import load_suite, write_items
from autosft.executor.generate import GenerateJob, load_generator
from autosft.executor.prompts import Prompts, make_prompts, read_prompts
from autosft.lab.base import base_dir
from autosft.types import GenerateSettings

NEW_TOKENS, BATCH = 64, 128
PEER = Path(__file__).with_name("peers") / "vllm_generation.py"


def ours(checkpoint: Path, prompts: Prompts) -> tuple[float, list[str]]:
    """Answer with the executor's generator."""
    settings = GenerateSettings(max_new_tokens=NEW_TOKENS, batch_size=BATCH)
    job = GenerateJob(checkpoint, prompts, settings, seed=0, batch_size=BATCH)
    generator = load_generator("transformers")
    generator.generate(job, lambda line: None)
    start = time.perf_counter()
    answers = generator.generate(job, lambda line: None)
    return time.perf_counter() - start, [answer.text for answer in answers]


def transformers(checkpoint: Path, prompts: Prompts) -> tuple[float, list[str]]:
    """Answer with `generate`: padded on the left, batches of similar length."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    order = sorted(range(len(prompts.ids)), key=lambda i: len(prompts.tokens[i]))
    answers = [""] * len(order)

    def run() -> None:
        for start in range(0, len(order), BATCH):
            part = order[start : start + BATCH]
            width = max(len(prompts.tokens[i]) for i in part)
            ids = torch.full((len(part), width), prompts.pad_id)
            seen = torch.zeros_like(ids)
            for row, i in enumerate(part):
                found = torch.as_tensor(list(prompts.tokens[i]))
                ids[row, width - len(found) :], seen[row, width - len(found) :] = found, 1
            with torch.inference_mode():
                made = model.generate(
                    input_ids=ids, attention_mask=seen, max_new_tokens=NEW_TOKENS, do_sample=False,
                    eos_token_id=prompts.end_of_turn_id, pad_token_id=prompts.pad_id,
                )  # fmt: skip
            for row, i in enumerate(part):
                answers[i] = tokenizer.decode(made[row, width:], skip_special_tokens=True)

    run()
    start = time.perf_counter()
    run()
    return time.perf_counter() - start, answers


def vllm(python: str, checkpoint: Path, prompts: Prompts) -> tuple[float, list[str]]:
    """Answer with vLLM in its own environment."""
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder) / "asked.json", Path(folder) / "answered.json"
        job: dict[str, Any] = {
            "model": str(checkpoint),
            "prompts": [[int(t) for t in tokens] for tokens in prompts.tokens],
            "stop_id": prompts.end_of_turn_id,
            "new_tokens": NEW_TOKENS,
            "batch": BATCH,
        }
        asked.write_text(json.dumps(job))
        subprocess.run([python, str(PEER), str(asked), str(answered)], check=True, stdout=sys.stderr)
        found = json.loads(answered.read_text())
    return found["seconds"], found["texts"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--checkpoint", type=Path, default=base_dir(), help="default: the lab's base")
    parser.add_argument("--vllm", metavar="PYTHON", help="Python of an environment with vLLM")
    parser.add_argument("--prompts-per-leaf", type=int, default=60)
    options = parser.parse_args()
    suite = load_suite("lab", seed=0, prompts_per_leaf=options.prompts_per_leaf)
    with tempfile.TemporaryDirectory() as folder:
        items = Path(folder) / "items.jsonl"
        write_items(suite.items, items)
        prompts = read_prompts(
            make_prompts(options.checkpoint, items, 256, ArtifactStore(Path(folder) / "store"))
        )
        results = {"autosft": ours(options.checkpoint, prompts)}
        results["transformers"] = transformers(options.checkpoint, prompts)
        if options.vllm:
            results["vLLM"] = vllm(options.vllm, options.checkpoint, prompts)
    load = ", ".join(f"{x:.1f}" for x in os.getloadavg())
    print(f"{len(prompts.ids):,} prompts, {platform.machine()}, {os.cpu_count()} cores, load {load}\n")
    print("| tool | seconds | times autosft's | equal answers |\n|---|---|---|---|")
    seconds, texts = results["autosft"]
    for name, (took, answers) in results.items():
        same = sum(a.strip() == b.strip() for a, b in zip(answers, texts, strict=True))
        print(f"| {name} | {took:.2f} | {took / seconds:.2f} | {same:,} of {len(texts):,} |")


if __name__ == "__main__":
    main()
