"""Pretrain the lab's base model from nothing, on a CPU, and write it as a Hugging Face folder."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autosft.lab.corpus import documents
from autosft.lab.tokenizer import (
    DOCUMENT_END,
    PAD,
    SPECIAL_TOKENS,
    TURN_END,
    VOCABULARY,
    save_tokenizer,
    train_tokenizer,
)

if TYPE_CHECKING:
    import torch
    from tokenizers import Tokenizer

CONTEXT_TOKENS = 512


@dataclass(frozen=True, slots=True)
class PretrainSettings:
    """How the base is made. Units: tokens; learning rates per step.

    Attributes:
        tokens: Text seen in all.
        batch_sequences: Sequences a step.
        sequence_tokens: Tokens a sequence.
        matrix_lr: Muon's rate, for the weight matrices of the layers.
        vector_lr: AdamW's rate, for embeddings and norms.
        seed: Seed of the weights and of the text.
        threads: CPU threads.
    """

    tokens: int = 7_000_000
    batch_sequences: int = 24
    sequence_tokens: int = 96
    matrix_lr: float = 0.015
    vector_lr: float = 3e-3
    seed: int = 0
    threads: int = 1


def model_config(pad_id: int, document_id: int, end_id: int) -> dict[str, Any]:
    """Return the `config.json` values of the base: the Qwen3 shape, 1.04 million parameters."""
    return {
        "vocab_size": VOCABULARY,
        "hidden_size": 128,
        "intermediate_size": 352,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "max_position_embeddings": CONTEXT_TOKENS,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": True,
        "attention_bias": False,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
        "pad_token_id": pad_id,
        "bos_token_id": document_id,
        "eos_token_id": end_id,
    }


def _batches(tokenizer: Tokenizer, settings: PretrainSettings) -> Iterator[torch.Tensor]:
    """Yield (sequences, tokens + 1) of ids: documents end to end, each closed by the document token."""
    import torch

    close = SPECIAL_TOKENS.index(DOCUMENT_END)
    need = settings.batch_sequences * (settings.sequence_tokens + 1)
    stream, buffer = documents(settings.seed), [close]
    while True:
        while len(buffer) < need:
            for encoding in tokenizer.encode_batch_fast([next(stream) for _ in range(256)]):
                buffer += [*encoding.ids, close]
        yield torch.tensor(buffer[:need]).view(settings.batch_sequences, -1)
        buffer = buffer[need:]


def _schedule(step: int, steps: int) -> float:
    """Linear warm-up over 3 % of the steps, flat to 40 %, then linear to 2 %."""
    warm, flat = max(1, int(0.03 * steps)), int(0.4 * steps)
    if step < warm:
        return (step + 1) / warm
    return 1.0 if step < flat else max(0.02, 1.0 - 0.98 * (step - flat) / (steps - flat))


def _optimizers(model: torch.nn.Module, settings: PretrainSettings) -> list[torch.optim.Optimizer]:
    """Muon for the matrices, AdamW for the rest: a third of the tokens AdamW alone would need."""
    import torch

    named = list(model.named_parameters())
    matrices = [p for name, p in named if p.dim() == 2 and "embed" not in name]
    others = [p for name, p in named if not (p.dim() == 2 and "embed" not in name)]
    return [
        torch.optim.Muon(matrices, lr=settings.matrix_lr, weight_decay=0.0),
        torch.optim.AdamW(others, lr=settings.vector_lr, betas=(0.9, 0.95), weight_decay=0.0),
    ]


def _initialise(model: torch.nn.Module) -> None:
    """Scale matrices by their fan-in, half as much where they write into the residual stream."""
    import torch

    for name, parameter in model.named_parameters():
        if parameter.dim() != 2:
            continue
        writes = "o_proj" in name or "down_proj" in name
        std = 0.02 if "embed" in name else (0.5 if writes else 1.0) / math.sqrt(parameter.shape[1])
        torch.nn.init.normal_(parameter, 0.0, std)


def pretrain(
    folder: Path, settings: PretrainSettings, on_step: Callable[[int, int, float, float], None] | None = None
) -> dict[str, Any]:
    """Train tokenizer and model, write the folder, return what was measured.

    Args:
        folder: Where the Hugging Face folder goes; created if missing.
        settings: How long and how fast.
        on_step: Called every 50 steps with step, steps, mean loss since the last call, seconds.

    Returns:
        parameters, tokens, steps, loss (mean of the last 50 steps), wall_s, cpu_s.
    """
    import torch
    import torch.nn.functional as F
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.set_num_threads(settings.threads)
    torch.manual_seed(settings.seed)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = train_tokenizer()
    pad_id, document_id, end_id = (SPECIAL_TOKENS.index(token) for token in (PAD, DOCUMENT_END, TURN_END))
    model = Qwen3ForCausalLM(Qwen3Config(**model_config(pad_id, document_id, end_id)))
    _initialise(model)
    optimizers = _optimizers(model, settings)
    peaks = [[group["lr"] for group in optimizer.param_groups] for optimizer in optimizers]
    steps = settings.tokens // (settings.batch_sequences * settings.sequence_tokens)
    wall, cpu, losses = time.perf_counter(), time.process_time(), []
    model.train()
    for step, ids_BT in zip(range(steps), _batches(tokenizer, settings), strict=False):
        factor = _schedule(step, steps)
        for optimizer, rates in zip(optimizers, peaks, strict=True):
            for group, peak in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = peak * factor
        with torch.autocast("cpu", torch.bfloat16):
            logits_BTV = model(input_ids=ids_BT[:, :-1], use_cache=False).logits
        loss = F.cross_entropy(logits_BTV.flatten(0, 1).float(), ids_BT[:, 1:].flatten())
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        losses.append(float(loss.detach()))
        if step % 50 == 49 and on_step is not None:
            on_step(step + 1, steps, sum(losses[-50:]) / 50, time.perf_counter() - wall)
    _save(model, tokenizer, folder, pad_id=pad_id, end_id=end_id)
    return {
        "parameters": sum(p.numel() for p in model.parameters()),
        "tokens": steps * settings.batch_sequences * settings.sequence_tokens,
        "steps": steps,
        "loss": sum(losses[-50:]) / len(losses[-50:]),
        "wall_s": round(time.perf_counter() - wall, 1),
        "cpu_s": round(time.process_time() - cpu, 1),
    }


def _save(model: Any, tokenizer: Tokenizer, folder: Path, *, pad_id: int, end_id: int) -> None:
    import torch

    model.to(torch.bfloat16).save_pretrained(folder)
    generation = {"eos_token_id": end_id, "pad_token_id": pad_id, "do_sample": False}
    (folder / "generation_config.json").write_text(json.dumps(generation, indent=2) + "\n")
    save_tokenizer(tokenizer, folder, context=CONTEXT_TOKENS)
