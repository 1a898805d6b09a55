"""Trained weights to a Hugging Face folder: the base's type, its tokenizer, end-of-turn as EOS.

A base model's EOS is its pre-training separator; a checkpoint trained on chat turns must stop at the end of a
turn, so configuration and generation configuration name that token.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autosft.errors import BaseModelError
from autosft.executor.base import BaseInfo
from autosft.executor.prompts import Prompts

if TYPE_CHECKING:
    import torch

VERSION = 1

#: Larger checkpoints are several files with an index.
SHARD_BYTES = 5 * 10**9


def convert(base: BaseInfo, weights: Path, prompts: Prompts, folder: Path) -> dict[str, Any]:
    """Write a checkpoint folder that `transformers` and `vllm` load.

    Args:
        base: The base the weights were trained from.
        weights: The trainer's `model.safetensors` (float32, Hugging Face names, tied tensors once).
        prompts: Holds the tokenizer folder and the end-of-turn token.
        folder: Where to write.

    Returns:
        dtype, parameters, eos_token_id.

    Raises:
        BaseModelError: The weights do not belong to the base.
    """
    from safetensors.torch import load_file

    state = load_file(str(weights))
    folder.mkdir(parents=True, exist_ok=True)
    if base.native:
        _write_native(base, state, folder)
    else:
        _write_hf(base, state, folder)
    for file in sorted(p for p in prompts.tokenizer.iterdir() if p.is_file()):
        shutil.copyfile(file, folder / file.name)
    _write_config(base, prompts, folder)
    parameters = sum(tensor.numel() for tensor in state.values())
    return {"dtype": base.dtype, "parameters": parameters, "eos_token_id": prompts.end_of_turn_id}


def _write_native(base: BaseInfo, state: Mapping[str, torch.Tensor], folder: Path) -> None:
    import torch
    from safetensors.torch import save_file

    dtype = getattr(torch, base.dtype)
    cast = {name: tensor.to(dtype).contiguous() for name, tensor in state.items()}
    if sum(tensor.nbytes for tensor in cast.values()) <= SHARD_BYTES:
        save_file(cast, str(folder / "model.safetensors"), metadata={"format": "pt"})
        return
    from huggingface_hub import save_torch_state_dict

    save_torch_state_dict(cast, str(folder), max_shard_size=SHARD_BYTES)


def _write_hf(base: BaseInfo, state: Mapping[str, torch.Tensor], folder: Path) -> None:
    import torch

    from autosft.executor.models.hf_causal import open_hf

    dtype = getattr(torch, base.dtype)
    model = open_hf(base, dtype)
    own = dict(model.named_parameters())
    if set(own) != set(state):
        odd = sorted(set(own) ^ set(state))[:3]
        raise BaseModelError(
            f"weights do not belong to the base (first differences: {odd})", where=str(base.path)
        )
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(state[name])
    model.save_pretrained(str(folder), max_shard_size=SHARD_BYTES)


def _write_config(base: BaseInfo, prompts: Prompts, folder: Path) -> None:
    config = dict(base.config)
    ids = {"eos_token_id": prompts.end_of_turn_id, "pad_token_id": prompts.pad_id}
    config.update(ids)
    config["dtype"] = base.dtype
    config.pop("torch_dtype", None)
    _write_json(folder / "config.json", config)
    generation = {"do_sample": False, **ids}
    if isinstance(config.get("bos_token_id"), int):
        generation["bos_token_id"] = config["bos_token_id"]
    _write_json(folder / "generation_config.json", generation)


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n", encoding="utf-8")
