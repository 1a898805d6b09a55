"""A lack of memory: micro-batches are halved, the batch and what is learned stay."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest

from autosft.artifacts import ArtifactStore
from autosft.errors import ConfigError
from autosft.executor.base import base_fingerprint, check_base
from autosft.executor.failure import OUT_OF_MEMORY, RankLostError, RankMemoryError, cause_of
from autosft.executor.train import TrainJob, load_trainer
from autosft.executor.train.megatron.limit import VARIABLE, limit_memory
from autosft.executor.train.megatron.memory import estimate
from autosft.executor.train.megatron.shape import read_shape
from autosft.executor.train.megatron_trainer import _failure
from autosft.types import TrainSettings
from tests.executor.megatron.test_parity import SETTINGS, TOLERANCE, run
from tests.executor.worlds import write_base, write_build


@pytest.mark.slow
def test_too_large_micro_batches_are_halved_and_nothing_else_changes(tmp_path, monkeypatch):
    """The kernel refuses the attention of 4,000 tokens at once; twice 2,000 fit."""
    pytest.importorskip("megatron.core", reason="needs the extra `megatron`")
    base = write_base(tmp_path / "base", neutral=True, dtype="float32")
    build = write_build(ArtifactStore(tmp_path / "store"), base, rows=60, steps=2, batch_tokens=4000)
    expected = run(base, build, tmp_path / "torch", "torch")
    monkeypatch.setenv(VARIABLE, "1100")
    folder, lines = tmp_path / "run", []
    folder.mkdir()
    settings = dataclasses.replace(SETTINGS, backend="megatron", micro_batch_tokens=8000)
    job = TrainJob(check_base(base), base_fingerprint(base), build, 0, settings, 0, folder)
    done = load_trainer("megatron").train(job, lines.append)
    assert done.measured["micro_batch_tokens"] in (2000, 4000)
    notes = [line["note"] for line in lines if "note" in line]
    assert notes[0] == "out of memory with 8000 tokens a micro-batch; trying again with 4000"
    assert notes[-1].endswith(f"trying again with {done.measured['micro_batch_tokens']}")
    curve = pq.read_table(folder / "loss_curve.parquet").to_pandas()
    assert np.abs(curve[curve.source == ""].loss.to_numpy() - expected).max() < TOLERANCE
    assert (folder / "consumed.parquet").read_bytes() == (tmp_path / "torch/consumed.parquet").read_bytes()
    assert not (folder / ".ranks").exists()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["qwen3", "llama"])
def test_the_estimate_is_what_autograd_keeps(tmp_path, kind):
    pytest.importorskip("megatron.core", reason="needs the extra `megatron`")
    lengths = (64, 256, 1024)
    base = write_base(tmp_path / "base", kind, dtype="float32", layers=4, hidden=128)
    command = [sys.executable, "-m", "tests.executor.megatron.kept_process", str(base)]
    subprocess.run([*command, str(tmp_path / "kept.json"), *map(str, lengths)], check=True, timeout=300)
    kept = json.loads((tmp_path / "kept.json").read_text())
    shape = read_shape(check_base(base))
    for n_tokens in lengths:
        whole = estimate(shape, TrainSettings(dtype="float32"), n_tokens, fused=False)
        # The estimate's logits hold their gradient too, which a forward pass does not keep.
        logits = whole.logits * 8 // 12
        assert 0.9 < (whole.activations + logits) / kept[f"False-{n_tokens}"] < 1.2
        # Recomputation keeps a layer's input each; the layer computed again comes on top later.
        again = estimate(shape, TrainSettings(dtype="float32", recompute=True), n_tokens, fused=False)
        one_layer = whole.activations // shape.layers
        assert 0.7 < (again.activations - one_layer + logits) / kept[f"True-{n_tokens}"] < 1.3


def test_a_lack_of_memory_is_told_from_a_loss():
    full = {"rank": 1, "kind": OUT_OF_MEMORY, "text": "can't allocate memory"}
    lost = {"rank": 0, "kind": "peer_lost", "text": "connection closed by peer"}
    assert isinstance(_failure([lost, full], 1), RankMemoryError)
    assert cause_of(_failure([lost, full], 1)) == OUT_OF_MEMORY
    assert isinstance(_failure([lost], 1, oom_kills=1), RankMemoryError)
    assert isinstance(_failure([lost], 1), RankLostError)


@pytest.mark.parametrize("value", ["0", "-5", "many", "1.5"])
def test_a_bound_that_is_none_is_refused(monkeypatch, value):
    import torch

    monkeypatch.setenv(VARIABLE, value)
    with pytest.raises(ConfigError, match="positive number of MiB"):
        limit_memory(torch.device("cpu"))
