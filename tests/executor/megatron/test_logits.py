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


def difference(base, folder):
    """Largest difference of logits, and the largest logit."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    ids = np.random.default_rng(0).integers(0, model.config.vocab_size, 48)
    np.save(folder / "ids.npy", ids)
    command = [sys.executable, "-m", "tests.executor.megatron.logits_process", str(base)]
    files = [str(folder / "ids.npy"), str(folder / "logits.npy")]
    subprocess.run([*command, *files], check=True, timeout=120)
    with torch.no_grad():
        theirs_TV = model(torch.from_numpy(ids)[None]).logits[0].numpy()
    return np.abs(np.load(folder / "logits.npy") - theirs_TV).max(), np.abs(theirs_TV).max()


@pytest.mark.parametrize(
    ("kind", "tied"), [("qwen3", True), ("qwen3", False), ("qwen2", True), ("llama", False)]
)
def test_logits_are_hugging_faces(tmp_path, kind, tied):
    base = write_base(tmp_path / "base", kind, dtype="float32", tied=tied)
    far, largest = difference(base, tmp_path)
    assert far < 1e-5 * max(1.0, largest)


def test_logits_agree_after_training(tmp_path):
    base = write_base(tmp_path / "base", neutral=True, dtype="float32")
    build = write_build(ArtifactStore(tmp_path / "store"), base, rows=30, steps=3)
    run(base, build, tmp_path / "run", "megatron", lr=2e-3)
    trained = tmp_path / "trained"
    shutil.copytree(base, trained)
    before = (trained / "model.safetensors").read_bytes()
    shutil.copyfile(tmp_path / "run/model.safetensors", trained / "model.safetensors")
    assert (trained / "model.safetensors").read_bytes() != before
    far, largest = difference(trained, tmp_path)
    assert far < 1e-5 * max(1.0, largest)
