"""Losses of the torch trainer and of Megatron on several ranks, on one build."""

from __future__ import annotations

import dataclasses
import os

import numpy as np
import pyarrow.parquet as pq
import pytest
from safetensors.torch import load_file

from autosft.artifacts import ArtifactStore
from autosft.errors import BaseFingerprintError
from autosft.executor.base import base_fingerprint, check_base
from autosft.executor.builds import read_training_set
from autosft.executor.train import TrainJob, load_trainer
from autosft.types import TrainSettings
from tests.executor.worlds import write_base, write_build

pytest.importorskip("megatron.core", reason="needs the extra `megatron`")
pytestmark = pytest.mark.slow

SETTINGS = TrainSettings(dtype="float32", lr=2e-3, min_lr=2e-5, log_every_steps=1)
TOLERANCE = 1e-5
EVERY = pytest.mark.skipif(
    not os.environ.get("AUTOSFT_PARITY_ALL"), reason="some minutes; run with AUTOSFT_PARITY_ALL=1"
)
RANKS = {
    "one": {},
    "data": {"data_parallel": 2},
    "tensor": {"tensor_parallel": 2},
    "pipeline": {"pipeline_parallel": 2},
}


def run(base, build, folder, backend, **changes):
    folder.mkdir()
    settings = dataclasses.replace(SETTINGS, backend=backend, **changes)
    job = TrainJob(check_base(base), base_fingerprint(base), build, 0, settings, 0, folder)
    load_trainer(backend).train(job, lambda line: None)
    curve = pq.read_table(folder / "loss_curve.parquet").to_pandas()
    return curve[curve.source == ""].loss.to_numpy()


def require_same_weights(base, folder, expected):
    """Both moved from the base by the same, to a thousandth: a decay left out or added would show."""
    ours, theirs = (load_file(f / "model.safetensors") for f in (folder, expected))
    assert set(ours) == set(theirs)
    start = load_file(base / "model.safetensors")
    for key, tensor in theirs.items():
        moved = (tensor - start[key]).norm()
        assert (ours[key] - tensor).norm() < 1e-3 * moved, key


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    root = tmp_path_factory.mktemp("parity")
    base = write_base(root / "base", neutral=True, dtype="float32")
    build = write_build(ArtifactStore(root / "store"), base, rows=60, steps=6)
    return base, build, run(base, build, root / "torch", "torch"), root / "torch"


@pytest.mark.parametrize("name", RANKS)
def test_losses_weights_and_order_are_the_torch_trainers(world, tmp_path, name):
    base, build, expected, torch_folder = world
    losses = run(base, build, tmp_path / name, "megatron", **RANKS[name])
    assert np.abs(losses - expected).max() < TOLERANCE
    curves = [
        pq.read_table(f / "loss_curve.parquet").to_pandas().set_index(["step", "source"])
        for f in (tmp_path / name, torch_folder)
    ]
    assert curves[0].index.equals(curves[1].index) and set(curves[0].index.levels[1]) == {
        "",
        "loud",
        "plain",
    }
    assert (curves[0].loss - curves[1].loss).abs().max() < TOLERANCE
    assert curves[0][["tokens", "loss_tokens"]].equals(curves[1][["tokens", "loss_tokens"]])
    assert sorted(p.name for p in (tmp_path / name).iterdir()) == sorted(
        p.name for p in torch_folder.iterdir()
    )
    consumed = pq.read_table(tmp_path / name / "consumed.parquet")
    assert consumed.equals(pq.read_table(torch_folder / "consumed.parquet"))
    assert consumed.column("row").to_pylist() == read_training_set(build, 0).order.tolist()
    require_same_weights(base, tmp_path / name, torch_folder)


FAMILIES = [("qwen2", True, "tensor"), ("llama", False, "pipeline")]
MORE_FAMILIES = [
    (kind, tied, ranks)
    for kind in ("qwen3", "qwen2", "llama")
    for tied in (True, False)
    for ranks in ("tensor", "pipeline")
    if (kind, tied, ranks) not in FAMILIES
]


@pytest.mark.parametrize(
    ("kind", "tied", "ranks"), FAMILIES + [pytest.param(*more, marks=EVERY) for more in MORE_FAMILIES]
)
def test_each_family_trains_as_with_torch_on_two_ranks(tmp_path, kind, tied, ranks):
    base = write_base(tmp_path / "base", kind, neutral=True, dtype="float32", tied=tied)
    build = write_build(ArtifactStore(tmp_path / "store"), base, rows=30, steps=3)
    expected = run(base, build, tmp_path / "torch", "torch")
    losses = run(base, build, tmp_path / "megatron", "megatron", **RANKS[ranks])
    assert np.abs(losses - expected).max() < TOLERANCE
    assert expected[-1] != expected[0]


@pytest.mark.parametrize(
    "change",
    [
        {"recompute": True, "micro_batch_tokens": 64},
        {"data_parallel": 2, "distributed_optimizer": True, "overlap": True, "micro_batch_tokens": 64},
        pytest.param({"data_parallel": 2, "distributed_optimizer": True}, marks=EVERY),
        pytest.param({"data_parallel": 2, "overlap": True}, marks=EVERY),
        pytest.param({"pipeline_parallel": 2, "recompute": True, "micro_batch_tokens": 64}, marks=EVERY),
        pytest.param({"tensor_parallel": 2, "micro_batch_tokens": 64}, marks=EVERY),
    ],
    ids="-".join,
)
def test_how_it_is_computed_does_not_change_what_is_learned(world, tmp_path, change):
    base, build, expected, torch_folder = world
    losses = run(base, build, tmp_path / "run", "megatron", **change)
    assert np.abs(losses - expected).max() < TOLERANCE
    require_same_weights(base, tmp_path / "run", torch_folder)


def test_bfloat16_learns_as_the_torch_trainer(world, tmp_path):
    """All of a large run's settings at once; rounding of weights, not only of products, is what differs."""
    base, build, expected, _ = world
    folder = tmp_path / "run"
    folder.mkdir()
    settings = dataclasses.replace(
        SETTINGS,
        backend="megatron",
        dtype="bfloat16",
        data_parallel=2,
        distributed_optimizer=True,
        overlap=True,
        recompute=True,
        micro_batch_tokens=64,
    )
    job = TrainJob(check_base(base), base_fingerprint(base), build, 0, settings, 0, folder)
    done = load_trainer("megatron").train(job, lambda line: None)
    curve = pq.read_table(folder / "loss_curve.parquet").to_pandas()
    losses = curve[curve.source == ""].loss.to_numpy()
    assert 1e-6 < np.abs(losses / expected - 1).max() < 0.02
    assert done.measured["ranks"] == 2 and done.measured["micro_batch_tokens"] == 64
    assert done.measured["tokens_per_s_device"] == pytest.approx(done.measured["tokens_per_s"] / 2)
    assert "mfu" not in done.measured  # no peak is known for a CPU


def test_another_base_is_refused_before_any_rank_starts(world, tmp_path):
    base, build, _, _ = world
    settings = dataclasses.replace(SETTINGS, backend="megatron")
    job = TrainJob(check_base(base), "0" * 24, build, 0, settings, 0, tmp_path)
    with pytest.raises(BaseFingerprintError, match="trains from 0000"):
        load_trainer("megatron").train(job, lambda line: None)
    assert not list(tmp_path.iterdir())
