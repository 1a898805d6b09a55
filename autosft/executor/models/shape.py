"""The shape of a Qwen3 decoder, read from `config.json`; needs no torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Qwen3Shape:
    """The part of a Qwen3 configuration that decides the computation."""

    vocab: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    eps: float
    theta: float
    context: int
    tied: bool

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Qwen3Shape | None:
        """Read a Hugging Face `config.json`; None where this decoder cannot represent the model exactly."""
        rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
        if (
            config.get("model_type") != "qwen3"
            or config.get("hidden_act", "silu") != "silu"
            or config.get("attention_bias", False)
            or config.get("use_sliding_window", False)
            or rope.get("rope_type", rope.get("type", "default")) != "default"
        ):
            return None
        heads = int(config["num_attention_heads"])
        return cls(
            vocab=int(config["vocab_size"]),
            hidden=int(config["hidden_size"]),
            layers=int(config["num_hidden_layers"]),
            heads=heads,
            kv_heads=int(config.get("num_key_value_heads") or heads),
            head_dim=int(config.get("head_dim") or config["hidden_size"] // heads),
            intermediate=int(config["intermediate_size"]),
            eps=float(config.get("rms_norm_eps", 1e-6)),
            theta=float(rope.get("rope_theta") or config.get("rope_theta") or 10_000.0),
            context=int(config.get("max_position_embeddings", 32_768)),
            tied=bool(config.get("tie_word_embeddings", False)),
        )

    def matrices(self) -> Iterator[tuple[str, tuple[int, int]]]:
        """Yield (Hugging Face name, shape) of every matrix, in the order of the flat parameter."""
        q, kv = self.heads * self.head_dim, self.kv_heads * self.head_dim
        yield "model.embed_tokens.weight", (self.vocab, self.hidden)
        for i in range(self.layers):
            p = f"model.layers.{i}."
            yield p + "self_attn.q_proj.weight", (q, self.hidden)
            yield p + "self_attn.k_proj.weight", (kv, self.hidden)
            yield p + "self_attn.v_proj.weight", (kv, self.hidden)
            yield p + "self_attn.o_proj.weight", (self.hidden, q)
            yield p + "mlp.gate_proj.weight", (self.intermediate, self.hidden)
            yield p + "mlp.up_proj.weight", (self.intermediate, self.hidden)
            yield p + "mlp.down_proj.weight", (self.hidden, self.intermediate)
        if not self.tied:
            yield "lm_head.weight", (self.vocab, self.hidden)

    def vectors(self) -> Iterator[tuple[str, int]]:
        """Yield (Hugging Face name, size) of every norm weight, in the order of the flat parameter."""
        for i in range(self.layers):
            p = f"model.layers.{i}."
            yield p + "input_layernorm.weight", self.hidden
            yield p + "self_attn.q_norm.weight", self.head_dim
            yield p + "self_attn.k_norm.weight", self.head_dim
            yield p + "post_attention_layernorm.weight", self.hidden
        yield "model.norm.weight", self.hidden
