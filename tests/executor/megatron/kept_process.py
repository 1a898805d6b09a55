"""Bytes a Megatron model keeps for its backward pass, by autograd's own hook; a process of its own.

`python -m tests.executor.megatron.kept_process BASE OUT.json TOKENS...`, one rank, float32, local layers.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path


def main(base_folder: str, out: str, *lengths: str) -> None:
    from autosft.executor.train.megatron import cpu_shim

    cpu_shim.install()
    import torch
    from megatron.core import parallel_state
    from megatron.core.tensor_parallel import model_parallel_cuda_manual_seed

    from autosft.executor.base import check_base
    from autosft.executor.train.megatron.model import build_model, load_weights
    from autosft.executor.train.megatron.shape import read_shape
    from autosft.types import TrainSettings

    kept: dict[str, int] = {}
    with tempfile.NamedTemporaryFile() as meeting:
        torch.distributed.init_process_group(
            "gloo", init_method=f"file://{meeting.name}", rank=0, world_size=1
        )
        parallel_state.initialize_model_parallel(1, 1)
        model_parallel_cuda_manual_seed(0)
        base = check_base(base_folder)
        shape = read_shape(base)
        for recompute in (False, True):
            settings = TrainSettings(dtype="float32", recompute=recompute)
            _, model = build_model(shape, settings, engine=False)
            load_weights(model, base, shape)
            weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
            for n_tokens in map(int, lengths):
                kept[f"{recompute}-{n_tokens}"] = count(model.train(), n_tokens, shape.vocab, weights)
        torch.distributed.destroy_process_group()
    Path(out).write_text(json.dumps(kept))


def count(model, n_tokens: int, vocab: int, weights: set[int]) -> int:
    """Run a forward pass with loss; return the bytes of all storages kept, weights left out."""
    import torch

    sizes: dict[int, int] = {}
    alive = []

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            sizes[storage.data_ptr()] = storage.nbytes()
            alive.append(tensor)  # a freed address would be given out again
        return tensor

    ids_1T = torch.randint(0, vocab, (1, n_tokens))
    blocked_11TT = ~torch.ones(n_tokens, n_tokens, dtype=torch.bool).tril()[None, None]
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        model(ids_1T, torch.arange(n_tokens)[None], blocked_11TT, labels=ids_1T)
    return sum(sizes.values())


if __name__ == "__main__":
    main(*sys.argv[1:])
