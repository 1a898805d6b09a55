"""Logits of Hugging Face and Megatron-Core agree, for each family, before and after training."""

from __future__ import annotations

import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch

from autosft.artifacts import ArtifactStore
from tests.executor.megatron.test_parity import run
from tests.executor.worlds import write_base, write_build

pytest.importorskip("megatron.core", reason="needs the extra `megatron`")
pytestmark = pytest.mark.slow

FAMILIES = [(kind, tied) for kind in ("qwen3", "qwen2", "llama") for tied in (True, False)]


@pytest.fixture(scope="module")
def bases(tmp_path_factory):
    """Folder of each base, beside Megatron's logits of it."""
    root = tmp_path_factory.mktemp("logits")
    names = {pair: root / f"{pair[0]}-{'tied' if pair[1] else 'untied'}" for pair in FAMILIES}
    for (kind, tied), folder in names.items():
        write_base(folder / "base", kind, dtype="float32", tied=tied)
    start = write_base(root / "start", neutral=True, dtype="float32")
    build = write_build(ArtifactStore(root / "store"), start, rows=30, steps=3)
    run(start, build, root / "run", "megatron", data_parallel=2)
    trained = root / "trained" / "base"
    shutil.copytree(start, trained)
    shutil.copyfile(root / "run/model.safetensors", trained / "model.safetensors")
    assert (trained / "model.safetensors").read_bytes() != (start / "model.safetensors").read_bytes()
    np.save(root / "ids.npy", np.random.default_rng(0).integers(0, 448, 48))
    everyone = [str(folder / "base") for folder in names.values()] + [str(trained)]
    command = [sys.executable, "-m", "tests.executor.megatron.logits_process", str(root / "ids.npy")]
    subprocess.run([*command, *everyone], check=True, timeout=300)
    return {**names, "trained": root / "trained"}


@pytest.mark.parametrize("which", [*FAMILIES, "trained"], ids=str)
def test_logits_are_hugging_faces(bases, which):
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(bases[which] / "base", dtype=torch.float32)
    ids = torch.from_numpy(np.load(bases[which].parent / "ids.npy"))[None]
    with torch.no_grad():
        theirs_TV = model(ids).logits[0].numpy()
    far = np.abs(np.load(bases[which] / "logits.npy") - theirs_TV).max()
    assert far < 1e-5 * max(1.0, np.abs(theirs_TV).max())
