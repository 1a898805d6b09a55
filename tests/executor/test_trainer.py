"""The torch trainer on hand-laid builds."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pyarrow.parquet as pq
import pytest
from safetensors.torch import load_file

from autosft.artifacts import ArtifactStore
from autosft.errors import ArtifactError, BaseFingerprintError, ConfigError
from autosft.executor.base import base_fingerprint, check_base
from autosft.executor.builds import plan_sha, read_training_set
from autosft.executor.failure import NonFiniteLossError
from autosft.executor.train import TrainJob, load_trainer
from autosft.executor.train.torch_trainer import forward_passes, learning_rate, train
from autosft.types import TrainSettings
from tests.executor.worlds import write_base, write_build

FAST = TrainSettings(dtype="float32", log_every_steps=1)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    root = tmp_path_factory.mktemp("world")
    base = write_base(root / "base", neutral=True)
    store = ArtifactStore(root / "store")
    return base, write_build(store, base, rows=60, steps=30, seeds=(0, 1)), store


def run(world, folder, settings=FAST, seed=0, report=lambda line: None, **changes):
    base, build, _ = world
    folder.mkdir()
    job = TrainJob(check_base(base), base_fingerprint(base), build, seed, settings, 0, folder)
    return train(dataclasses.replace(job, **changes), report)


def test_training_lowers_the_loss_and_accounts_for_every_token(world, tmp_path):
    lines = []
    result = run(world, tmp_path / "a", report=lines.append)
    _, build, _ = world
    promised = build.data["plans"]["0"]
    assert result.data["train_tokens"] == promised["train_tokens"]
    assert result.data["loss_tokens"] == promised["loss_tokens"]
    assert result.data["optimizer_steps"] == 30 == len(lines)
    assert result.data["final_loss"] < 0.8 * result.data["first_loss"]
    assert lines[-1]["step"] == lines[-1]["steps"] == 30
    assert lines[-1]["tokens_per_s"] > 0

    curve = pq.read_table(tmp_path / "a/loss_curve.parquet").to_pandas()
    total = curve[curve.source == ""]
    parts = curve[curve.source != ""]
    assert total.tokens.sum() == promised["train_tokens"]
    assert set(parts.source) == {"loud", "plain"}
    by_step = (parts.loss * parts.loss_tokens).groupby(parts.step).sum() / parts.groupby(
        "step"
    ).loss_tokens.sum()
    assert np.allclose(by_step.to_numpy(), total.loss.to_numpy(), atol=1e-9)
    assert total.lr.iloc[-1] == pytest.approx(FAST.min_lr)


def test_consumed_rows_are_the_plan_in_its_order(world, tmp_path):
    run(world, tmp_path / "a", forward_tokens=50)
    _, build, _ = world
    data = read_training_set(build, 0)
    consumed = pq.read_table(tmp_path / "a/consumed.parquet").to_pandas()
    assert consumed.row.tolist() == data.order.tolist()
    assert consumed.id.tolist() == [data.ids[r] for r in data.order]
    assert consumed.step.tolist() == np.repeat(np.arange(30), np.diff(data.step_starts)).tolist()
    assert consumed.sequence.tolist() == data.sequence_of.tolist()


def test_a_changed_order_reaches_the_batches(world):
    _, build, _ = world
    one, two = read_training_set(build, 0), read_training_set(build, 1)
    first = np.concatenate([rows for rows, _ in forward_passes(one, 0, 8192)])
    other = np.concatenate([rows for rows, _ in forward_passes(two, 0, 8192)])
    assert first.tolist() == one.order[: one.step_starts[1]].tolist()
    assert first.tolist() != other.tolist()
    batch = next(iter(forward_passes(one, 0, 8192)))[1]
    fed = batch.ids_T[: batch.n_tokens].tolist()
    assert fed == [t for r in first for t in one.row_tokens(r).tolist()]


def test_equal_runs_give_equal_bytes_and_another_seed_does_not(world, tmp_path):
    run(world, tmp_path / "a")
    run(world, tmp_path / "b")
    run(world, tmp_path / "c", seed=1)
    files = ("model.safetensors", "loss_curve.parquet", "row_loss.parquet", "consumed.parquet")
    for name in files:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name
    assert (tmp_path / "a" / files[0]).read_bytes() != (tmp_path / "c" / files[0]).read_bytes()


def test_smaller_forward_passes_do_not_change_the_batch(world, tmp_path):
    whole = run(world, tmp_path / "a")
    cut = run(world, tmp_path / "b", forward_tokens=40)
    assert cut.data["optimizer_steps"] == whole.data["optimizer_steps"]
    assert cut.data["final_loss"] == pytest.approx(whole.data["final_loss"], rel=1e-3)
    a, b = (load_file(tmp_path / x / "model.safetensors") for x in "ab")
    start = load_file(world[0] / "model.safetensors")
    for name, tensor in a.items():
        moved = (tensor - start[name].float()).norm()
        assert (tensor - b[name]).norm() < 0.05 * moved, name


def test_row_losses_start_at_the_bases_own(world, tmp_path):
    """With a learning rate of nothing, every row's losses are the base's, by plain transformers."""
    import torch
    import torch.nn.functional as F
    from transformers import AutoModelForCausalLM

    base, build, _ = world
    run(world, tmp_path / "a", dataclasses.replace(FAST, lr=0.0, min_lr=0.0))
    table = pq.read_table(tmp_path / "a/row_loss.parquet").to_pandas()
    data = read_training_set(build, 0)
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    assert table.passes.sum() == len(data.order)
    assert table.passes.max() > 1
    for line in table.head(12).itertuples():
        ids = torch.from_numpy(data.row_tokens(line.row).astype(np.int64))
        with torch.no_grad():
            each = F.cross_entropy(model(input_ids=ids[None]).logits[0, :-1], ids[1:], reduction="none")
        expected = each[torch.from_numpy(data.row_mask(line.row)[1:].astype(bool))].mean().item()
        assert line.first_loss == pytest.approx(expected, abs=1e-4)
        assert line.last_loss == pytest.approx(expected, abs=1e-4)


def test_the_schedule_warms_up_and_ends_at_the_minimum():
    settings = TrainSettings(lr=1.0, min_lr=0.1, warmup_frac=0.1)
    rates = [learning_rate(k, 100, settings) for k in range(100)]
    assert rates[0] == pytest.approx(0.1)
    assert max(rates) == rates[9] == pytest.approx(1.0)
    assert rates[99] == pytest.approx(0.1)
    assert all(a >= b for a, b in itertools.pairwise(rates[9:]))
    assert learning_rate(0, 1, settings) == pytest.approx(1.0)


def test_another_base_is_refused_before_the_first_step(world, tmp_path):
    with pytest.raises(BaseFingerprintError, match="the campaign trains from 0000"):
        run(world, tmp_path / "a", base_fingerprint="0000")
    assert list((tmp_path / "a").iterdir()) == []


def test_a_diverging_run_stops_with_its_cause(world, tmp_path):
    with pytest.raises(NonFiniteLossError, match=r"not finite at step \d+ of 30"):
        run(world, tmp_path / "a", dataclasses.replace(FAST, lr=1e30))
    assert not (tmp_path / "a/model.safetensors").exists()


def test_a_receipt_that_promises_other_tokens_is_refused(world, tmp_path):
    _, build, _ = world
    plans = {"0": {**build.data["plans"]["0"], "train_tokens": 1}}
    with pytest.raises(ArtifactError, match="promises 1 train_tokens"):
        run(world, tmp_path / "a", build=dataclasses.replace(build, data={"plans": plans}))


def test_tokens_outside_the_vocabulary_are_refused(world, tmp_path):
    small = dataclasses.replace(check_base(world[0]), vocab=10)
    with pytest.raises(ArtifactError, match="another tokenizer"):
        run(world, tmp_path / "a", base=small)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": np.array([0, 99], np.int32)}, "names a row the build does not have"),
        ({"rows": np.array([], np.int32)}, "the plan is empty"),
        ({"step_starts": np.array([0, 1], np.int64)}, "do not cover its positions"),
        ({"sequence_starts": np.array([1], np.int64)}, "sequences do not cover"),
    ],
)
def test_a_plan_that_contradicts_its_build_is_refused(tmp_path, change, message):
    base = write_base(tmp_path / "base")
    build = write_build(ArtifactStore(tmp_path / "store"), base, rows=6, steps=2)
    with np.load(build.path / "plan-0.npz") as plan:
        arrays = {**plan, **change}
    np.savez(build.path / "plan-0.npz", **arrays)
    with pytest.raises(ArtifactError, match=message):
        read_training_set(build, 0)


def test_a_seed_without_a_plan_names_those_there_are(world):
    with pytest.raises(ArtifactError, match=r"no plan for seed 7.*plan-0\.npz"):
        plan_sha(world[1], 7)


def test_an_unknown_backend_is_refused():
    with pytest.raises(ConfigError, match="no trainer backend 'os'"):
        load_trainer("os")


def test_rows_without_loss_tokens_train_without_effect(tmp_path):
    base = write_base(tmp_path / "base")
    store = ArtifactStore(tmp_path / "store")
    build = write_build(store, base, rows=6, steps=3, promise=False)
    np.save(build.path / "mask.npy", np.zeros_like(np.load(build.path / "mask.npy")))
    (tmp_path / "a").mkdir()
    job = TrainJob(check_base(base), base_fingerprint(base), build, 0, FAST, 0, tmp_path / "a")
    result = train(job, lambda line: None)
    assert result.data["loss_tokens"] == 0
    assert result.data["final_loss"] is None
    table = pq.read_table(tmp_path / "a/row_loss.parquet").to_pandas()
    assert table.first_loss.isna().all()
    assert not math.isnan(float(load_file(tmp_path / "a/model.safetensors")["model.norm.weight"].sum()))
