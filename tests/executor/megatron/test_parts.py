"""The Megatron trainer's parts that need no ranks: shapes, weights, batches, memory, causes."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
import torch

from autosft.artifacts import ArtifactStore
from autosft.config import load_config
from autosft.errors import BaseModelError, ConfigError, ExecutorError
from autosft.executor.base import check_base
from autosft.executor.builds import read_training_set
from autosft.executor.failure import KILLED, NonFiniteLossError, RankLostError, cause_of
from autosft.executor.train.megatron.batches import cut_step, step_batches
from autosft.executor.train.megatron.memory import Memory, estimate, require_room
from autosft.executor.train.megatron.shape import check_parallel, read_shape
from autosft.executor.train.megatron.weights import WeightMap
from autosft.executor.train.megatron_trainer import _failure
from autosft.types import TrainSettings
from tests.executor.worlds import small_model, write_base, write_build

LAYER = [
    "input_layernorm.weight",
    "self_attention.linear_qkv.weight",
    "self_attention.linear_proj.weight",
    "pre_mlp_layernorm.weight",
    "mlp.linear_fc1.weight",
    "mlp.linear_fc2.weight",
]
EXTRA = {
    "qwen3": ["self_attention.q_layernorm.weight", "self_attention.k_layernorm.weight"],
    "qwen2": ["self_attention.linear_qkv.bias"],
    "llama": [],
}


def names(kind: str, layers: int, tied: bool) -> list[str]:
    parts = LAYER + EXTRA[kind]
    ends = ["embedding.word_embeddings.weight", "decoder.final_layernorm.weight"]
    head = [] if tied else ["output_layer.weight"]
    return ends + head + [f"decoder.layers.{k}.{part}" for k in range(layers) for part in parts]


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("kind", ["qwen3", "qwen2", "llama"])
def test_cut_weights_merge_to_the_hugging_face_ones(tmp_path, kind, tied, ranks):
    base = check_base(write_base(tmp_path / "base", kind, tied=tied))
    weights = WeightMap(read_shape(base), 0)
    state = {n: p.detach() for n, p in small_model(kind, tied=tied).named_parameters()}
    merged = {}
    for name in names(kind, 2, tied):
        merged.update(
            weights.merge(name, [weights.shard(name, state.__getitem__, r, ranks) for r in range(ranks)])
        )
    assert set(merged) == set(state)
    for name, tensor in state.items():
        assert torch.equal(merged[name], tensor), name


def test_a_parameter_count_is_the_models(tmp_path):
    for kind in EXTRA:
        base = check_base(write_base(tmp_path / kind, kind, tied=kind == "qwen3"))
        model = small_model(kind, tied=kind == "qwen3")
        assert read_shape(base).parameters == sum(p.numel() for p in model.parameters())


def test_what_cannot_be_mapped_is_refused_by_name(tmp_path):
    base = check_base(write_base(tmp_path / "gpt2", "gpt2"))
    with pytest.raises(BaseModelError, match="cannot map the architecture 'gpt2'"):
        read_shape(base)
    llama = check_base(write_base(tmp_path / "llama", "llama"))
    for change, named in (
        ({"attention_bias": True}, "attention_bias=True"),
        ({"rope_parameters": {"rope_type": "yarn", "factor": 4.0}}, "rope_type=yarn"),
        ({"hidden_act": "gelu"}, "hidden_act=gelu"),
    ):
        with pytest.raises(BaseModelError, match=named):
            read_shape(dataclasses.replace(llama, config={**llama.config, **change}))


@pytest.mark.parametrize(
    ("sizes", "message"),
    [({"tensor_parallel": 4}, "key/value heads"), ({"pipeline_parallel": 3}, "2 layers")],
)
def test_sizes_that_do_not_divide_the_model_are_refused(tmp_path, sizes, message):
    shape = read_shape(check_base(write_base(tmp_path / "base")))
    check_parallel(shape, TrainSettings(tensor_parallel=2, pipeline_parallel=2))
    with pytest.raises(ConfigError, match=message):
        check_parallel(shape, TrainSettings(**sizes))


def test_the_torch_trainer_refuses_ranks():
    with pytest.raises(ConfigError, match="2 ranks"):
        load_config(["trainer.data_parallel=2"])


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("most", [30, 64, 10_000])
def test_parts_of_a_step_hold_its_rows_once_in_order(ranks, most):
    lengths = np.random.default_rng(ranks).integers(1, 40, 23)
    bounds = cut_step(lengths, ranks, most)
    assert bounds[0] == 0 and bounds[-1] == len(lengths)
    assert (np.diff(bounds) >= 0).all() and (len(bounds) - 1) % ranks == 0
    sizes = [lengths[a:b].sum() for a, b in itertools.pairwise(bounds)]
    assert max(sizes) <= max(most, lengths.max())


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_ranks_interleave_the_plans_order(tmp_path, ranks):
    base = write_base(tmp_path / "base")
    data = read_training_set(write_build(ArtifactStore(tmp_path / "store"), base, steps=3), 0)
    for step in range(3):
        shares = [step_batches(data, step, rank=r, ranks=ranks, most_tokens=60) for r in range(ranks)]
        fed = sorted((batch for share in shares for batch in share), key=lambda batch: batch.part)
        assert len({len(share) for share in shares}) == len({b.ids_1T.shape for b in fed}) == 1
        rows = np.concatenate([batch.rows for batch in fed])
        assert rows.tolist() == data.order[data.step_starts[step] : data.step_starts[step + 1]].tolist()
        for batch in fed:
            tokens = [t for r in batch.rows for t in data.row_tokens(r).tolist()]
            assert batch.ids_1T[0, : len(tokens)].tolist() == tokens
            assert batch.loss_mask_1T.sum() == sum(data.row_mask(r)[1:].sum() for r in batch.rows)
            at = batch.loss_mask_1T[0].nonzero()[:, 0]
            assert torch.equal(batch.labels_1T[0, at], batch.ids_1T[0, at + 1])
            seen = ~batch.blocked_11TT()[0, 0]
            assert seen.diagonal().all() and not seen.triu(1).any()
            assert not (seen & (batch.row_T[:, None] != batch.row_T[None])).any()


def test_memory_grows_with_the_micro_batch_and_falls_with_ranks(tmp_path):
    shape = read_shape(check_base(write_base(tmp_path / "base")))
    one = estimate(shape, TrainSettings(), 1024)
    assert one.weights == 2 * shape.parameters and one.optimizer == 12 * shape.parameters
    assert estimate(shape, TrainSettings(), 2048).activations > one.activations
    assert estimate(shape, TrainSettings(recompute=True), 1024).activations < one.activations
    cut = TrainSettings(distributed_optimizer=True, data_parallel=4)
    assert estimate(shape, cut, 1024).optimizer == one.optimizer // 4


def test_a_run_that_cannot_fit_is_refused_with_the_sum():
    with pytest.raises(ExecutorError, match=r"computed: weights 4096\.0"):
        require_room(Memory(2**42, 2**42, 2**42, 0, 0, ranks=1))


def test_a_broken_ranks_reason_wins_over_those_who_lost_it():
    lost = {"rank": 0, "kind": "peer_lost", "text": "Connection closed by peer"}
    broke = {"rank": 1, "kind": "non_finite_loss", "text": "loss is not finite at step 2 of 9"}
    assert isinstance(_failure([lost, broke], 1), NonFiniteLossError)
    only = _failure([lost], 1)
    assert isinstance(only, RankLostError) and cause_of(only) == KILLED
