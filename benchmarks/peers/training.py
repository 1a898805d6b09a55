"""The peers' side of benchmarks/training.py: transformers' Trainer or TRL's SFTTrainer on a laid-out build.

    PYTHON benchmarks/peers/training.py transformers|trl BUILD BASE FOLDER ROWS_PER_STEP float32|bfloat16

Needs nothing of this project. Rows arrive tokenized, with labels; batches are padded to their longest row, as
both trainers do by default. What only costs time is off: evaluation, saving, gradient checkpointing.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    DataCollatorForSeq2Seq,
    Trainer,
    TrainingArguments,
)


def main(what: str, build: str, base: str, folder: str, rows_per_step: str, dtype: str) -> None:
    data, n_tokens = read_rows(Path(build))
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(base)
    trainer = make_trainer(what, model, tokenizer, data, arguments(folder, int(rows_per_step), dtype))
    wall, cpu = time.perf_counter(), time.process_time()
    trainer.train()
    result = {
        "tokens": n_tokens,
        "wall_s": time.perf_counter() - wall,
        "cpu_s": time.process_time() - cpu,
        "losses": [line["loss"] for line in trainer.state.log_history if "loss" in line],
    }
    (Path(folder) / "result.json").write_text(json.dumps(result))


def read_rows(build: Path) -> tuple[Dataset, int]:
    """Return the plan's rows in order, and their tokens."""
    tokens, mask = np.load(build / "tokens.npy"), np.load(build / "mask.npy")
    offsets, plan = np.load(build / "offsets.npy"), np.load(build / "plan-0.npz")
    ids, labels = [], []
    for row in plan["rows"].tolist():
        span = slice(int(offsets[row]), int(offsets[row + 1]))
        ids.append(tokens[span].tolist())
        labels.append(np.where(mask[span] > 0, tokens[span], -100).tolist())
    return Dataset.from_dict({"input_ids": ids, "labels": labels}), sum(map(len, ids))


def arguments(folder: str, rows_per_step: int, dtype: str) -> dict[str, Any]:
    return {
        "output_dir": folder,
        "per_device_train_batch_size": rows_per_step,
        "num_train_epochs": 1,
        "learning_rate": 1e-3,
        "lr_scheduler_type": "constant",
        "weight_decay": 0.01,
        "adam_beta1": 0.9,
        "adam_beta2": 0.95,
        "max_grad_norm": 1.0,
        "optim": "adamw_torch_fused",
        "train_sampling_strategy": "sequential",
        "gradient_checkpointing": False,
        "bf16": dtype == "bfloat16",
        "use_cpu": not torch.cuda.is_available(),
        "logging_steps": 10,
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "dataloader_num_workers": 0,
    }


def make_trainer(what: str, model: Any, tokenizer: Any, data: Dataset, settings: dict[str, Any]) -> Trainer:
    if what == "transformers":
        collator = DataCollatorForSeq2Seq(tokenizer)
        return Trainer(
            model=model, args=TrainingArguments(**settings), train_dataset=data, data_collator=collator
        )
    from trl import SFTConfig, SFTTrainer

    config = SFTConfig(**settings, max_length=None, dataset_kwargs={"skip_prepare_dataset": True})
    return SFTTrainer(model=model, args=config, train_dataset=data, processing_class=tokenizer)


if __name__ == "__main__":
    main(*sys.argv[1:])
