"""What only runs on CUDA devices: `pytest --gpu tests/executor/megatron/test_gpu.py`. Never run so far.

TransformerEngine's layers with THD packing, NCCL, the allocator's bound. The torch trainer on the same device
is the measure; bfloat16 leaves two per cent.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from autosft.artifacts import ArtifactStore
from autosft.executor.base import base_fingerprint, check_base
from autosft.executor.train import TrainJob, load_trainer
from autosft.executor.train.megatron.limit import VARIABLE
from tests.executor.megatron.test_parity import SETTINGS, run
from tests.executor.worlds import write_base, write_build

pytestmark = [pytest.mark.gpu, pytest.mark.slow]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    pytest.importorskip("megatron.core", reason="needs the extra `megatron`")
    root = tmp_path_factory.mktemp("gpu")
    # TransformerEngine wants sizes that are multiples of 16, flash attention heads of at least 32.
    base = write_base(root / "base", "llama", neutral=True, hidden=256)
    build = write_build(ArtifactStore(root / "store"), base, rows=60, steps=6, batch_tokens=2048)
    return base, build, run(base, build, root / "torch", "torch", dtype="bfloat16")


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"micro_batch_tokens": 512},
        {"recompute": True},
        {"data_parallel": 2, "distributed_optimizer": True, "overlap": True},
        {"tensor_parallel": 2},
        {"pipeline_parallel": 2},
    ],
    ids="-".join,
)
def test_losses_with_thd_packing_are_the_torch_trainers(world, tmp_path, change):
    pytest.importorskip("transformer_engine", reason="needs TransformerEngine")
    base, build, expected = world
    if 2 in change.values() and torch.cuda.device_count() < 2:
        pytest.skip("needs two CUDA devices")
    losses = run(base, build, tmp_path / "run", "megatron", dtype="bfloat16", **change)
    assert np.abs(losses / expected - 1).max() < 0.02


def test_the_receipt_holds_the_share_of_the_peak(world, tmp_path):
    base, build, _ = world
    settings = dataclasses.replace(SETTINGS, backend="megatron", dtype="bfloat16")
    job = TrainJob(check_base(base), base_fingerprint(base), build, 0, settings, 0, tmp_path)
    measured = load_trainer("megatron").train(job, lambda line: None).measured
    assert measured["tokens_per_s_device"] > 0
    if any(name in torch.cuda.get_device_name(0) for name in ("H100", "H200", "H800", "A100")):
        assert 0 < measured["mfu"] < 1


def test_too_large_micro_batches_are_halved_on_a_device(tmp_path, monkeypatch):
    base = write_base(tmp_path / "base", "llama", neutral=True, hidden=256, vocab=32_768)
    build = write_build(ArtifactStore(tmp_path / "store"), base, rows=60, steps=2, batch_tokens=16_384)
    expected = run(base, build, tmp_path / "torch", "torch", dtype="bfloat16")
    # Logits of 16,384 tokens alone take 2 GiB in float32.
    monkeypatch.setenv(VARIABLE, "3000")
    (tmp_path / "run").mkdir()
    settings = dataclasses.replace(SETTINGS, backend="megatron", dtype="bfloat16", micro_batch_tokens=32_768)
    job = TrainJob(check_base(base), base_fingerprint(base), build, 0, settings, 0, tmp_path / "run")
    done = load_trainer("megatron").train(job, lambda line: None)
    assert done.measured["micro_batch_tokens"] < 32_768
    curve = pq.read_table(tmp_path / "run/loss_curve.parquet").to_pandas()
    assert np.abs(curve[curve.source == ""].loss.to_numpy() / expected - 1).max() < 0.02
