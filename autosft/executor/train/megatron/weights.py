"""Hugging Face weights to one Megatron rank's parameters, and back.

Names are of Megatron-Core's GPTModel; the TransformerEngine layers fuse each input norm into the projection
after it and so carry other names for the same tensors. Queries, keys and values of one key/value group lie
together in `linear_qkv`; gate lies above up in `linear_fc1`. Tensor parallelism cuts columns of the first
projections (groups, halves) and rows of the second.

Shapes: G key/value groups, Q query heads of a group, E head size, D hidden size, N tensor-parallel ranks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from autosft.errors import BaseModelError
from autosft.executor.train.megatron.shape import DecoderShape

if TYPE_CHECKING:
    import torch

    Read = Callable[[str], torch.Tensor]

EMBED, HEAD, NORM = "model.embed_tokens.weight", "lm_head.weight", "model.norm.weight"
_LAYER = re.compile(r"decoder\.layers\.(\d+)\.(.+)")
_COPIED = {
    "input_layernorm.weight": "input_layernorm.weight",
    "self_attention.linear_qkv.layer_norm_weight": "input_layernorm.weight",
    "pre_mlp_layernorm.weight": "post_attention_layernorm.weight",
    "mlp.linear_fc1.layer_norm_weight": "post_attention_layernorm.weight",
    "self_attention.q_layernorm.weight": "self_attn.q_norm.weight",
    "self_attention.k_layernorm.weight": "self_attn.k_norm.weight",
}
_ROWS_CUT = {
    "self_attention.linear_proj.weight": "self_attn.o_proj.weight",
    "mlp.linear_fc2.weight": "mlp.down_proj.weight",
}


@dataclass(frozen=True, slots=True)
class WeightMap:
    """The map for one base.

    Attributes:
        shape: The base's shape.
        first_layer: Number of the model's layer that a pipeline stage calls layer 0.
    """

    shape: DecoderShape
    first_layer: int

    def shard(self, name: str, read: Read, rank: int, ranks: int) -> torch.Tensor:
        """Return what a tensor-parallel rank holds under a Megatron name.

        Args:
            name: Parameter name inside the GPTModel.
            read: Hugging Face name -> tensor.
            rank: Tensor-parallel rank.
            ranks: Tensor-parallel ranks, dividing heads, groups, intermediate size and vocabulary.

        Raises:
            BaseModelError: The name is none of a dense decoder's.
        """
        import torch

        if name == "embedding.word_embeddings.weight":
            return read(EMBED).chunk(ranks, 0)[rank]
        if name == "output_layer.weight":
            return read(EMBED if self.shape.tied else HEAD).chunk(ranks, 0)[rank]
        if name == "decoder.final_layernorm.weight":
            return read(NORM)
        prefix, part = self._layer(name)
        if part in _COPIED:
            return read(prefix + _COPIED[part])
        if part in _ROWS_CUT:
            return read(prefix + _ROWS_CUT[part]).chunk(ranks, 1)[rank]
        if part == "mlp.linear_fc1.weight":
            halves = [read(f"{prefix}mlp.{x}_proj.weight").chunk(ranks, 0)[rank] for x in ("gate", "up")]
            return torch.cat(halves, 0)
        kind = self._qkv_kind(part, name)
        groups = self.shape.kv_heads
        q, k, v = (read(f"{prefix}self_attn.{x}_proj.{kind}") for x in "qkv")
        joined = torch.cat([x.reshape(groups, -1, *x.shape[1:]) for x in (q, k, v)], 1)
        return joined.chunk(ranks, 0)[rank].flatten(0, 1)

    def merge(self, name: str, shards: Sequence[torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return the Hugging Face tensors of a Megatron parameter, given all ranks' shards in order.

        A tied output layer (the copy on a last pipeline stage) gives none.

        Raises:
            BaseModelError: The name is none of a dense decoder's.
        """
        import torch

        if name == "embedding.word_embeddings.weight":
            return {EMBED: torch.cat(list(shards), 0)}
        if name == "output_layer.weight":
            return {} if self.shape.tied else {HEAD: torch.cat(list(shards), 0)}
        if name == "decoder.final_layernorm.weight":
            return {NORM: shards[0]}
        prefix, part = self._layer(name)
        if part in _COPIED:
            return {prefix + _COPIED[part]: shards[0]}
        if part in _ROWS_CUT:
            return {prefix + _ROWS_CUT[part]: torch.cat(list(shards), 1)}
        if part == "mlp.linear_fc1.weight":
            gate, up = zip(*(s.chunk(2, 0) for s in shards), strict=True)
            return {
                f"{prefix}mlp.gate_proj.weight": torch.cat(gate),
                f"{prefix}mlp.up_proj.weight": torch.cat(up),
            }
        kind = self._qkv_kind(part, name)
        s = self.shape
        joined = torch.cat(list(shards), 0)
        joined = joined.reshape(s.kv_heads, -1, *joined.shape[1:])
        sizes = [s.heads // s.kv_heads * s.head_dim, s.head_dim, s.head_dim]
        parts: tuple[torch.Tensor, ...] = torch.split(joined, sizes, dim=1)
        return {
            f"{prefix}self_attn.{x}_proj.{kind}": part_.flatten(0, 1)
            for x, part_ in zip("qkv", parts, strict=True)
        }

    def _layer(self, name: str) -> tuple[str, str]:
        match = _LAYER.fullmatch(name)
        if match is None:
            raise BaseModelError(f"Megatron parameter {name!r} has no Hugging Face counterpart")
        return f"model.layers.{int(match[1]) + self.first_layer}.", match[2]

    @staticmethod
    def _qkv_kind(part: str, name: str) -> str:
        head, _, kind = part.rpartition(".")
        if head != "self_attention.linear_qkv" or kind not in ("weight", "bias"):
            raise BaseModelError(f"Megatron parameter {name!r} has no Hugging Face counterpart")
        return kind


def cut_dimension(name: str) -> int | None:
    """Return along which dimension tensor-parallel ranks hold parts of a parameter; None for copies."""
    part = match[2] if (match := _LAYER.fullmatch(name)) else name
    if part == "decoder.final_layernorm.weight" or part in _COPIED:
        return None
    return 1 if part in _ROWS_CUT else 0
