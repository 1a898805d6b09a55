"""Parity: the native decoder and packed HF models against plain transformers forwards."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from autosft.errors import BaseModelError
from autosft.executor.base import check_base
from autosft.executor.models import load_model
from autosft.executor.models.hf_causal import HfCausal
from autosft.executor.models.native_qwen3 import NativeQwen3
from autosft.executor.models.shape import Qwen3Shape
from autosft.executor.packing import IGNORED, pack_rows
from autosft.executor.train.adamw import AdamW
from autosft.types import TrainSettings
from tests.executor.worlds import small_model, write_base

LENGTHS = (30, 2, 50, 1, 44, 60, 20, 35, 7, 41)


def make_rows(vocab: int, lengths=LENGTHS, seed: int = 0):
    rng = np.random.default_rng(seed)
    rows = [rng.integers(0, vocab, n).astype(np.int32) for n in lengths]
    masks = [(rng.random(n) < 0.5).astype(np.uint8) for n in lengths]
    masks[0][0] = 1  # a first token has nothing before it and must not be scored
    return rows, masks


def separate_losses(model, rows, masks) -> torch.Tensor:
    """The reference: one unpadded forward a row, full logits."""
    losses = []
    for row, mask in zip(rows, masks, strict=True):
        ids = torch.from_numpy(row.astype(np.int64))
        logits = model(input_ids=ids[None]).logits[0].float()
        each = F.cross_entropy(logits[:-1], ids[1:], reduction="none")
        losses.append(each[torch.from_numpy(mask[1:].astype(bool))])
    return torch.cat(losses)


def native_of(model, dtype=torch.float32) -> NativeQwen3:
    shape = Qwen3Shape.from_config(model.config.to_dict())
    assert shape is not None
    native = NativeQwen3(shape, dtype)
    native.load_state(dict(model.named_parameters()))
    return native


@pytest.mark.parametrize("tied", [True, False])
def test_native_logits_equal_transformers(tied):
    model = small_model("qwen3", tied=tied)
    ids = torch.randint(0, 448, (3, 40), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected = model(input_ids=ids).logits
    found = native_of(model).logits(ids)
    assert expected.std() > 0.1
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("align", [1, 64])
def test_native_packed_losses_and_gradients_equal_separate_forwards(align):
    model = small_model("qwen3")
    native = native_of(model)
    rows, masks = make_rows(448)
    batch = pack_rows(rows, masks, align=align)
    expected = separate_losses(model, rows, masks)
    found = native.token_losses(batch)
    assert batch.n_targets == len(expected)
    assert torch.all(found[batch.n_targets :] == 0)
    torch.testing.assert_close(found[: batch.n_targets], expected, atol=2e-5, rtol=1e-5)

    expected.mean().backward()
    (found.sum() / batch.n_targets).backward()
    gradients = NativeQwen3(native.shape, torch.float32)
    gradients.matrices.data, gradients.vectors.data = native.matrices.grad, native.vectors.grad
    own = gradients.state()
    for name, parameter in model.named_parameters():
        scale = parameter.grad.abs().max()
        assert scale > 0
        assert (own[name] - parameter.grad).abs().max() < 1e-4 * scale, name


@pytest.mark.parametrize("kind", ["qwen3", "llama", "qwen2", "gpt2"])
def test_hf_packed_losses_equal_separate_forwards(kind):
    model = small_model(kind)
    rows, masks = make_rows(448)
    batch = pack_rows(rows, masks)
    wrapped = HfCausal(model, torch.float32, 448)
    assert wrapped.isolates
    with torch.no_grad():
        found, expected = wrapped.token_losses(batch), separate_losses(model, rows, masks)
    torch.testing.assert_close(found[: batch.n_targets], expected, atol=2e-5, rtol=1e-5)


def test_a_recurrent_model_is_found_out_and_gets_separate_forwards():
    model = small_model("mamba")
    wrapped = HfCausal(model, torch.float32, 448)
    assert not wrapped.isolates
    rows, masks = make_rows(448, (9, 5, 12))
    batch = pack_rows(rows, masks)
    with torch.no_grad():
        found, expected = wrapped.token_losses(batch), separate_losses(model, rows, masks)
    torch.testing.assert_close(found[: batch.n_targets], expected, atol=2e-5, rtol=1e-5)


def test_a_row_does_not_feel_its_neighbours():
    native = native_of(small_model("qwen3"))
    rows, masks = make_rows(448, (20, 25, 30))
    before = native.token_losses(pack_rows(rows, masks))
    other = [rows[0], (rows[1] + 7) % 448, rows[2]]
    after = native.token_losses(pack_rows(other, masks))
    part = pack_rows(rows, masks).part_S[: int(sum(m[1:].sum() for m in masks))]
    changed = (before - after).abs()[: len(part)]
    assert changed[part == 1].min() > 0
    assert changed[part != 1].max() < 1e-5


def test_bfloat16_training_losses_are_near_float32():
    model = small_model("qwen3")
    rows, masks = make_rows(448)
    batch = pack_rows(rows, masks)
    exact, rounded = (
        native_of(model).token_losses(batch),
        native_of(model, torch.bfloat16).token_losses(batch),
    )
    assert (exact.sum() - rounded.sum()).abs() / exact.sum() < 0.02


def test_state_round_trip_is_exact():
    model = small_model("qwen3", tied=False)
    state = native_of(model).state()
    assert set(state) == {name for name, _ in model.named_parameters()}
    for name, parameter in model.named_parameters():
        assert torch.equal(state[name], parameter), name


def test_extreme_logits_give_finite_losses():
    from autosft.executor.models.kernels import TokenLoss

    logits = torch.zeros(2, 5)
    logits[0, 1], logits[1, 2] = 500.0, -500.0
    logits.requires_grad_()
    targets = torch.tensor([0, IGNORED])
    losses = TokenLoss.apply(logits, targets)
    losses.sum().backward()
    assert losses[0].item() == pytest.approx(500.0)
    assert losses[1].item() == 0.0
    assert torch.equal(logits.grad[1], torch.zeros(5))


def test_load_model_picks_the_native_decoder_for_qwen3_only(tmp_path):
    assert isinstance(load_model(check_base(write_base(tmp_path / "q")), "float32"), NativeQwen3)
    assert isinstance(load_model(check_base(write_base(tmp_path / "l", "llama")), "float32"), HfCausal)


def test_weights_of_another_shape_are_refused_by_name(tmp_path):
    base = write_base(tmp_path / "a")
    other = write_base(tmp_path / "b", hidden=32)
    (base / "config.json").write_text((other / "config.json").read_text())
    with pytest.raises(BaseModelError, match=r"model\.embed_tokens\.weight is of shape"):
        load_model(check_base(base), "float32")


def test_a_hf_model_with_missing_weights_is_refused(tmp_path):
    from safetensors.torch import load_file, save_file

    base = write_base(tmp_path / "a", "llama")
    state = load_file(base / "model.safetensors")
    del state["model.layers.1.mlp.up_proj.weight"]
    save_file(state, base / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(BaseModelError, match=r"1 weights are missing.*up_proj"):
        load_model(check_base(base), "float32")


def test_adamw_equals_torch():
    settings = TrainSettings(weight_decay=0.1, clip_norm=0.5)
    torch.manual_seed(0)
    starts = [torch.randn(20, 8), torch.randn(30), torch.randn(8)]
    ours = [torch.nn.Parameter(x.clone()) for x in starts]
    theirs = [torch.nn.Parameter(x.clone()) for x in starts]
    optimiser = AdamW(ours[:1], ours[1:], settings)
    groups = [{"params": theirs[:1], "weight_decay": 0.1}, {"params": theirs[1:], "weight_decay": 0.0}]
    reference = torch.optim.AdamW(groups, lr=1.0, betas=(settings.beta1, settings.beta2))
    for step in range(6):
        for a, b in zip(ours, theirs, strict=True):
            a.grad = torch.randn_like(a) * (0.01 if step % 2 else 10.0)
            b.grad = a.grad.clone()
        lr = 0.1 / (step + 1)
        for group in reference.param_groups:
            group["lr"] = lr
        expected = torch.nn.utils.clip_grad_norm_(theirs, settings.clip_norm)
        reference.step()
        assert optimiser.step(lr) == pytest.approx(float(expected), rel=1e-5)
        assert all(p.grad is None for p in ours)
        for a, b in zip(ours, theirs, strict=True):
            torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-6)
