"""A compact Qwen3-shaped decoder, fast where a model is small and every operation's overhead counts.

All matrices live in one flat parameter and all norm weights in another: one cast to the compute type a
step, two tensors for the optimiser. Query, key and value (and gate and up) projections are adjacent in it
and are applied as one product. `state` and `load_state` speak the names of transformers'
`Qwen3ForCausalLM`.

The two coordinates that the rotary embedding turns together are neighbours here (in the Hugging Face layout
they are half a head apart), in queries and keys alike, which leaves their products as they are.

Shapes: T tokens of the packed sequence, D hidden size, H query heads, N key/value heads, E head size,
F intermediate size, V vocabulary, S supervised positions, B batch of answers.

Source: Qwen3 technical report (arXiv:2505.09388), section 2, for the architecture.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F

from autosft.errors import BaseModelError
from autosft.executor.base import BaseInfo
from autosft.executor.generate.answers import Answer, DecodePlan
from autosft.executor.models.kernels import (
    head_norm_rope,
    rms_norm,
    select_rows,
    slots_from_tokens,
    swiglu,
    token_loss,
    tokens_from_slots,
)
from autosft.executor.models.shape import Qwen3Shape
from autosft.executor.packing import PackedBatch

# Logits held at once while computing losses; bounds memory for large vocabularies.
_LOGITS_AT_ONCE = 64_000_000


@dataclass(frozen=True, slots=True)
class Layer:
    """Weights of one layer, as views: matrices in the compute type, norm weights in float32."""

    norm_in: torch.Tensor
    norm_heads: torch.Tensor
    norm_mlp: torch.Tensor
    qkv: torch.Tensor
    out: torch.Tensor
    gate_up: torch.Tensor
    down: torch.Tensor


@dataclass(frozen=True, slots=True)
class Weights:
    """All weights as views of one cast of the flat parameters."""

    embed: torch.Tensor
    layers: tuple[Layer, ...]
    norm: torch.Tensor
    head: torch.Tensor


class NativeQwen3(torch.nn.Module):
    """The decoder. Parameters are float32 masters; `compute` is the type of the matrix products."""

    forward_tokens = 8192

    def __init__(self, shape: Qwen3Shape, compute: torch.dtype) -> None:
        super().__init__()
        self.shape, self.compute = shape, compute
        self.matrices = torch.nn.Parameter(torch.zeros(sum(math.prod(s) for _, s in shape.matrices())))
        self.vectors = torch.nn.Parameter(torch.zeros(sum(n for _, n in shape.vectors())))
        self.register_buffer("turn", rotary_table(shape), persistent=False)
        self.turn: torch.Tensor

    # -- weights ------------------------------------------------------------------------------------------

    def load_state(self, state: Mapping[str, torch.Tensor], where: str = "") -> None:
        """Copy weights in.

        Args:
            state: Hugging Face name -> tensor; `lm_head.weight` is ignored where embeddings are tied.
            where: Named in errors.

        Raises:
            BaseModelError: A tensor is missing or has another shape.
        """
        with torch.no_grad():
            for name, view in self._views():
                tensor = state.get(name)
                if tensor is None or tuple(tensor.shape) != tuple(view.shape):
                    found = "missing" if tensor is None else f"of shape {tuple(tensor.shape)}"
                    raise BaseModelError(
                        f"weight {name} is {found}, expected {tuple(view.shape)}",
                        where=where,
                        hint="config.json and the weights do not belong together",
                    )
                view.copy_(self._pairs_together(tensor) if _is_rotated(name) else tensor)

    def state(self) -> dict[str, torch.Tensor]:
        """Return Hugging Face name -> float32 tensor."""
        return {n: self._pairs_apart(v) if _is_rotated(n) else v.clone() for n, v in self._views()}

    def _pairs_together(self, tensor: torch.Tensor) -> torch.Tensor:
        """Hugging Face layout to this one, along the first dimension."""
        heads = tensor.reshape(-1, 2, self.shape.head_dim // 2, *tensor.shape[1:])
        return heads.transpose(1, 2).reshape(tensor.shape)

    def _pairs_apart(self, tensor: torch.Tensor) -> torch.Tensor:
        """This layout to the Hugging Face one, along the first dimension."""
        heads = tensor.reshape(-1, self.shape.head_dim // 2, 2, *tensor.shape[1:])
        return heads.transpose(1, 2).reshape(tensor.shape)

    def _views(self) -> Iterator[tuple[str, torch.Tensor]]:
        for flat, entries in ((self.matrices, self.shape.matrices()), (self.vectors, self.shape.vectors())):
            offset = 0
            for name, size in entries:
                count = math.prod(size) if isinstance(size, tuple) else size
                yield name, flat.data[offset : offset + count].view(size)
                offset += count

    def weights(self) -> Weights:
        """Cast and split the parameters; differentiable."""
        s = self.shape
        q, kv = s.heads * s.head_dim, s.kv_heads * s.head_dim
        per_layer = [
            (q + 2 * kv, s.hidden),
            (s.hidden, q),
            (2 * s.intermediate, s.hidden),
            (s.hidden, s.intermediate),
        ]
        shapes = [(s.vocab, s.hidden), *per_layer * s.layers, *([] if s.tied else [(s.vocab, s.hidden)])]
        flat = torch.split(self.matrices.to(self.compute), [math.prod(x) for x in shapes])
        mats = [part.view(x) for part, x in zip(flat, shapes, strict=True)]
        vecs = torch.split(self.vectors, [*[s.hidden, 2 * s.head_dim, s.hidden] * s.layers, s.hidden])
        layers = tuple(
            Layer(
                vecs[3 * i],
                vecs[3 * i + 1].view(2, s.head_dim),
                vecs[3 * i + 2],
                *mats[1 + 4 * i : 5 + 4 * i],
            )
            for i in range(s.layers)
        )
        return Weights(mats[0], layers, vecs[-1], mats[0] if s.tied else mats[-1])

    @torch.no_grad()
    def decoding_weights(self) -> Weights:
        """Cast and split the parameters for decoding: `norm_heads` is (H + N, E), one line a head."""
        s, w = self.shape, self.weights()
        counts = torch.tensor([s.heads, s.kv_heads], device=w.norm.device)
        layers = [replace(x, norm_heads=x.norm_heads.repeat_interleave(counts, dim=0)) for x in w.layers]
        return replace(w, layers=tuple(layers))

    def optimiser_groups(self) -> tuple[list[torch.nn.Parameter], list[torch.nn.Parameter]]:
        """Return (parameters with weight decay, parameters without)."""
        return [self.matrices], [self.vectors]

    # -- training -----------------------------------------------------------------------------------------

    def token_losses(self, batch: PackedBatch) -> torch.Tensor:
        """Return the cross-entropy of each supervised token, float32, shape (S,), 0 on padding."""
        w, s = self.weights(), self.shape
        batch = batch.to(self.turn.device)
        turn = self.turn[batch.positions_T].unsqueeze(1).expand(-1, s.heads + s.kv_heads, -1).contiguous()
        x = F.embedding(batch.ids_T, w.embed).float()
        for i, layer in enumerate(w.layers):
            normed = rms_norm(x, layer.norm_in, s.eps, self.compute)
            qkv = head_norm_rope(F.linear(normed, layer.qkv), layer.norm_heads, turn, s.heads, s.eps)
            mixed = self._attend(qkv, batch)
            if i == s.layers - 1:
                # Nothing reads the last layer but the supervised positions.
                mixed = select_rows(mixed, batch.predict_S, batch.n_targets)
                x = select_rows(x, batch.predict_S, batch.n_targets)
            x = x + F.linear(mixed.to(self.compute), layer.out)
            hidden = swiglu(F.linear(rms_norm(x, layer.norm_mlp, s.eps, self.compute), layer.gate_up))
            x = x + F.linear(hidden, layer.down)
        final = rms_norm(x, w.norm, s.eps, self.compute)
        rows = max(1, _LOGITS_AT_ONCE // s.vocab)
        losses = [
            token_loss(F.linear(h, w.head), t)
            for h, t in zip(torch.split(final, rows), torch.split(batch.targets_S, rows), strict=True)
        ]
        return losses[0] if len(losses) == 1 else torch.cat(losses)

    def _attend(self, qkv: torch.Tensor, batch: PackedBatch) -> torch.Tensor:
        """Causal attention inside each row; (T, H + 2N, E) -> (T, H * E)."""
        s = self.shape
        slots = slots_from_tokens(qkv, batch.token_of_slot_K, batch.slot_of_token)
        outputs, first = [], 0
        for rows, width in batch.groups:
            block = slots[first : first + rows * width].view(rows, width, -1, s.head_dim).transpose(1, 2)
            q, k, v = block.split_with_sizes([s.heads, s.kv_heads, s.kv_heads], dim=1)
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=s.heads != s.kv_heads)
            outputs.append(mixed.transpose(1, 2).reshape(rows * width, -1))
            first += rows * width
        flat = outputs[0] if len(outputs) == 1 else torch.cat(outputs)
        return tokens_from_slots(flat, batch.slot_of_token, qkv.shape[0])

    def answer(
        self, prompts: Sequence[Sequence[int]], plan: DecodePlan, progress: Callable[[int], None]
    ) -> list[Answer]:
        """Continue each prompt; in the order given."""
        from autosft.executor.generate.native_decode import decode_native

        return decode_native(self, prompts, plan, progress)

    # -- decoding -----------------------------------------------------------------------------------------

    @torch.inference_mode()
    def logits(self, ids_BT: torch.Tensor) -> torch.Tensor:
        """Return float32 logits (B, T, V) of whole sequences without padding."""
        cache = self.new_cache(ids_BT.shape[0], ids_BT.shape[1])
        mask = torch.full(
            (ids_BT.shape[1],) * 2, float("-inf"), dtype=self.compute, device=ids_BT.device
        ).triu(1)
        positions = torch.arange(ids_BT.shape[1], device=ids_BT.device).expand_as(ids_BT)
        w = self.decoding_weights()
        hidden = self.forward_cached(w, ids_BT, positions, cache, 0, mask[None, None])
        return F.linear(hidden, w.head).float()

    def new_cache(self, rows: int, length: int) -> torch.Tensor:
        """Return an empty key/value cache, shape (layers, 2, B, N, length, E)."""
        s = self.shape
        return torch.zeros(
            s.layers, 2, rows, s.kv_heads, length, s.head_dim, dtype=self.compute, device=self.turn.device
        )

    def forward_cached(
        self,
        w: Weights,
        ids: torch.Tensor,
        positions: torch.Tensor,
        cache: torch.Tensor,
        at: int,
        mask: torch.Tensor,
    ) -> torch.Tensor:
        """Run tokens `at .. at + T` of every answer through the model, reading and filling the cache.

        Args:
            w: What `decoding_weights` returned.
            ids: (B, T) token ids.
            positions: (B, T) position of each token inside its own text.
            cache: What `new_cache` returned.
            at: Column of the first token.
            mask: Added to the scores, in the compute type: 0 where attention is allowed, -inf elsewhere;
                broadcast to (B, 1, T, at + T).

        Returns:
            Normed hidden states (B, T, D) in the compute type.
        """
        s, (rows, width) = self.shape, ids.shape
        rotated = s.heads + s.kv_heads
        turn = self.turn[positions].unsqueeze(2)
        x = F.embedding(ids, w.embed).float()
        for i, layer in enumerate(w.layers):
            normed = F.rms_norm(x, (s.hidden,), layer.norm_in, s.eps).to(self.compute)
            qkv = F.linear(normed, layer.qkv).view(rows, width, -1, s.head_dim)
            heads = F.rms_norm(qkv[:, :, :rotated].float(), (s.head_dim,), None, s.eps) * layer.norm_heads
            pairs = torch.view_as_complex(heads.view(rows, width, rotated, -1, 2))
            heads = torch.view_as_real(pairs * turn).view_as(heads).to(self.compute)
            keys, values = cache[i, 0], cache[i, 1]
            keys[:, :, at : at + width] = heads[:, :, s.heads :].transpose(1, 2)
            values[:, :, at : at + width] = qkv[:, :, rotated:].transpose(1, 2)
            mixed = self._attend_cached(
                heads[:, :, : s.heads], keys[:, :, : at + width], values[:, :, : at + width], mask
            )
            x = x + F.linear(mixed, layer.out)
            normed = F.rms_norm(x, (s.hidden,), layer.norm_mlp, s.eps).to(self.compute)
            gate, up = F.linear(normed, layer.gate_up).chunk(2, dim=-1)
            x = x + F.linear(F.silu(gate) * up, layer.down)
        return F.rms_norm(x, (s.hidden,), w.norm, s.eps).to(self.compute)

    def _attend_cached(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        """Attention of new tokens over the cache; (B, T, H, E) -> (B, T, H * E)."""
        s, (rows, width) = self.shape, q.shape[:2]
        group = s.heads // s.kv_heads
        if width > 1:
            mixed = F.scaled_dot_product_attention(
                q.transpose(1, 2), k, v, attn_mask=mask, enable_gqa=group > 1
            )
            return mixed.transpose(1, 2).reshape(rows, width, -1)
        # One new token: the heads of a group become rows of one query matrix, so that keys are not repeated,
        # and plain products beat the fused kernel by a quarter.
        grouped = q.reshape(-1, group, s.head_dim)
        k, v = (x.flatten(0, 1) for x in (k, v))
        penalty = mask.expand(rows, s.kv_heads, group, -1).reshape(len(grouped), group, -1)
        scores = torch.baddbmm(penalty, grouped, k.transpose(1, 2), alpha=s.head_dim**-0.5)
        return torch.bmm(torch.softmax(scores, dim=-1), v).view(rows, 1, -1)


def _is_rotated(name: str) -> bool:
    """Whether a weight's first dimension is made of query or key heads."""
    return name.endswith(("q_proj.weight", "k_proj.weight", "q_norm.weight", "k_norm.weight"))


def rotary_table(shape: Qwen3Shape) -> torch.Tensor:
    """Return the rotation of each position and pair of coordinates, (context, E / 2) complex.

    Source: rotary position embedding, arXiv:2104.09864, section 3.2.
    """
    exponents = torch.arange(0, shape.head_dim, 2, dtype=torch.int64).float() / shape.head_dim
    angles = torch.outer(torch.arange(shape.context).float(), 1.0 / shape.theta**exponents)
    return torch.polar(torch.ones_like(angles), angles)


def load_native(base: BaseInfo, compute: torch.dtype, device: str) -> NativeQwen3:
    """Load a Qwen3-shaped model from its safetensors files.

    Raises:
        BaseModelError: The weights do not fit the configuration.
    """
    from safetensors import safe_open

    shape = Qwen3Shape.from_config(base.config)
    if shape is None:
        raise BaseModelError("not a Qwen3 shape this decoder can represent", where=str(base.path))
    model = NativeQwen3(shape, compute)
    state: dict[str, torch.Tensor] = {}
    for file in base.weights:
        with safe_open(str(file), framework="pt") as stream:
            state.update({name: stream.get_tensor(name) for name in stream.keys()})  # noqa: SIM118
    model.load_state(state, where=str(base.path))
    return model.to(device)
