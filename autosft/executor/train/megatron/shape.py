"""The decoders this trainer can express in Megatron-Core, read from `config.json`; needs no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from autosft.errors import BaseModelError, ConfigError
from autosft.executor.base import BaseInfo
from autosft.types import TrainSettings

FAMILIES = ("qwen3", "qwen2", "llama")

#: Megatron-Core's `rope_scaling` fixes these; only the factor is free.
_LLAMA3_ROPE = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192.0}


@dataclass(frozen=True, slots=True)
class DecoderShape:
    """What decides the computation of a dense Qwen3, Qwen2.5 or Llama decoder.

    Attributes:
        family: Hugging Face model type.
        rope_factor: Factor of Llama 3's frequency scaling; 0 for none.
        qk_norm: RMSNorm on each head's query and key (Qwen3).
        qkv_bias: Bias of the query, key and value projections (Qwen2.5).
    """

    family: str
    vocab: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    eps: float
    theta: float
    rope_factor: float
    context: int
    tied: bool
    qk_norm: bool
    qkv_bias: bool

    @property
    def parameters(self) -> int:
        """Weights of the model; a tied embedding counts once."""
        attention = self.hidden * self.head_dim * (2 * self.heads + 2 * self.kv_heads)
        biases = self.head_dim * (self.heads + 2 * self.kv_heads) if self.qkv_bias else 0
        norms = 2 * self.hidden + (2 * self.head_dim if self.qk_norm else 0)
        layer = attention + biases + norms + 3 * self.hidden * self.intermediate
        embeddings = self.vocab * self.hidden * (1 if self.tied else 2)
        return self.layers * layer + embeddings + self.hidden


def read_shape(base: BaseInfo) -> DecoderShape:
    """Read a base's shape.

    Raises:
        BaseModelError: The architecture, or one of its options, has no counterpart here; it is named.
    """
    return shape_of(base.config, base.model_type, str(base.path / "config.json"))


def shape_of(config: Mapping[str, Any], family: str, where: str) -> DecoderShape:
    """Read a shape from a parsed `config.json`.

    Args:
        config: Its contents.
        family: Its `model_type`.
        where: The file, for messages.

    Raises:
        BaseModelError: The architecture, or one of its options, has no counterpart here; it is named.
    """
    if family not in FAMILIES:
        raise BaseModelError(
            f"the megatron trainer cannot map the architecture {family!r}",
            where=where,
            hint=f"it maps {', '.join(FAMILIES)}; trainer.backend=torch trains the others",
        )
    odd = _unsupported(config, family)
    if odd:
        raise BaseModelError(
            f"the megatron trainer cannot map {odd}", where=where, hint="train it with trainer.backend=torch"
        )
    try:
        return _shape(config, family)
    except (KeyError, TypeError, ValueError) as error:
        raise BaseModelError(f"config.json is incomplete: {error!r}", where=where) from None


def _shape(config: Mapping[str, Any], family: str) -> DecoderShape:
    rope = _rope(config)
    heads = int(config["num_attention_heads"])
    return DecoderShape(
        family=family,
        vocab=int(config["vocab_size"]),
        hidden=int(config["hidden_size"]),
        layers=int(config["num_hidden_layers"]),
        heads=heads,
        kv_heads=int(config.get("num_key_value_heads") or heads),
        head_dim=int(config.get("head_dim") or int(config["hidden_size"]) // heads),
        intermediate=int(config["intermediate_size"]),
        eps=float(config.get("rms_norm_eps", 1e-6)),
        theta=float(rope.get("rope_theta") or config.get("rope_theta") or 10_000.0),
        rope_factor=float(rope["factor"]) if _rope_type(rope) == "llama3" else 0.0,
        context=int(config.get("max_position_embeddings", 32_768)),
        tied=bool(config.get("tie_word_embeddings", False)),
        qk_norm=family == "qwen3",
        qkv_bias=family == "qwen2",
    )


def _rope(config: Mapping[str, Any]) -> Mapping[str, Any]:
    return config.get("rope_parameters") or config.get("rope_scaling") or {}


def _rope_type(rope: Mapping[str, Any]) -> str:
    return str(rope.get("rope_type", rope.get("type", "default")))


def _unsupported(config: Mapping[str, Any], family: str) -> str:
    """Name the option that would be computed wrongly; '' if there is none."""
    if config.get("hidden_act", "silu") != "silu":
        return f"hidden_act={config['hidden_act']}"
    for option in ("attention_bias", "mlp_bias", "use_sliding_window", "num_experts", "quantization_config"):
        if config.get(option):
            return f"{option}={config[option]}"
    rope = _rope(config)
    kind = _rope_type(rope)
    if kind == "llama3" and family == "llama":
        wrong = [k for k, v in _LLAMA3_ROPE.items() if float(rope.get(k, v)) != v]
        return f"rope {wrong[0]}={rope[wrong[0]]}" if wrong else ""
    return "" if kind == "default" else f"rope_type={kind}"


def check_parallel(shape: DecoderShape, settings: TrainSettings) -> None:
    """Refuse parallel sizes that do not divide the model; nothing is padded, so losses stay exact.

    Raises:
        ConfigError: Names the size and what it must divide.
    """
    tensor, pipeline = settings.tensor_parallel, settings.pipeline_parallel
    for what, value in (
        ("attention heads", shape.heads),
        ("key/value heads", shape.kv_heads),
        ("intermediate size", shape.intermediate),
        ("vocabulary", shape.vocab),
    ):
        if value % tensor:
            raise ConfigError(
                f"{tensor} does not divide the base's {what} ({value})",
                where="trainer.tensor_parallel",
                hint="choose a divisor",
            )
    if shape.layers % pipeline:
        raise ConfigError(
            f"{pipeline} does not divide the base's {shape.layers} layers",
            where="trainer.pipeline_parallel",
            hint="choose a divisor",
        )
