"""Logits of bases by Megatron-Core, in a process of its own: the CPU shim changes torch for good.

`python -m tests.executor.megatron.logits_process IDS.npy BASE...` writes `logits.npy` into each base's parent
folder; one rank, float32.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np


def main(ids_file: str, *bases: str) -> None:
    from autosft.executor.train.megatron import cpu_shim

    cpu_shim.install()
    import torch
    from megatron.core import parallel_state
    from megatron.core.tensor_parallel import model_parallel_cuda_manual_seed

    from autosft.executor.base import check_base
    from autosft.executor.train.megatron.model import build_model, load_weights
    from autosft.executor.train.megatron.shape import read_shape
    from autosft.types import TrainSettings

    with tempfile.NamedTemporaryFile() as meeting:
        torch.distributed.init_process_group(
            "gloo", init_method=f"file://{meeting.name}", rank=0, world_size=1
        )
        parallel_state.initialize_model_parallel(1, 1)
        model_parallel_cuda_manual_seed(0)
        ids_1T = torch.from_numpy(np.load(ids_file))[None]
        n_tokens = ids_1T.shape[1]
        blocked_11TT = ~torch.ones(n_tokens, n_tokens, dtype=torch.bool).tril()[None, None]
        for folder in bases:
            base = check_base(folder)
            shape = read_shape(base)
            _, model = build_model(shape, TrainSettings(dtype="float32"), engine=False)
            load_weights(model, base, shape)
            with torch.no_grad():
                logits_1TV = model.eval()(ids_1T, torch.arange(n_tokens)[None], blocked_11TT)
            np.save(Path(folder).parent / "logits.npy", logits_1TV[0].numpy())
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
