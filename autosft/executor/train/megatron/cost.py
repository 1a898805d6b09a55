"""What a Megatron run will take, computed from `config.json` and the settings alone: memory a rank and hours.

Hours follow from operations: 6 a weight and token (2 forward, 4 backward), 2 more with recomputation, and for
attention 12 x layers x heads x head size x mean context a token, over the devices' peak times an assumed
share of it. Nothing is measured; the receipt of a run holds the measured rate.

Source: arXiv:2204.02311, appendix B (operations of a step, model operations utilisation).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from autosft.errors import BaseModelError, ConfigError
from autosft.executor.train.megatron.memory import OVERHEAD_BYTES, Memory, estimate
from autosft.executor.train.megatron.shape import DecoderShape, check_parallel, shape_of
from autosft.types import TrainSettings

#: Share of a device's peak that is assumed to be reached; a guess, to be replaced by a run's own figure.
ASSUMED_MFU = 0.4
#: Dense bfloat16 operations a second of an H100 or H800, from the vendor's data sheet.
H800_FLOPS = 989e12
_DEFAULT_MICRO_TOKENS = 8192


@dataclass(frozen=True, slots=True)
class Cost:
    """Computed cost of a run.

    Attributes:
        shape: The base.
        settings: The run.
        memory: Of the rank that needs most, with fused attention.
        micro_tokens: Tokens of a micro-batch.
        micro_batches: Micro-batches of a rank in a step.
        tokens_per_s: Of all ranks together, at the assumed share of the peak.
        hours: For `tokens`, or None where no number was given.
        tokens: Training tokens of a run.
    """

    shape: DecoderShape
    settings: TrainSettings
    memory: Memory
    micro_tokens: int
    micro_batches: int
    tokens_per_s: float
    tokens: int | None

    @property
    def hours(self) -> float | None:
        """Hours of one run, start-up left out."""
        return None if self.tokens is None else self.tokens / self.tokens_per_s / 3600

    def to_json(self) -> dict[str, Any]:
        """Return plain data; every figure is computed."""
        return {
            "parameters": self.shape.parameters,
            "ranks": self.settings.ranks,
            "memory_bytes": {**asdict(self.memory), "total": self.memory.per_rank_bytes},
            "overhead_bytes": OVERHEAD_BYTES,
            "micro_batch_tokens": self.micro_tokens,
            "micro_batches_a_step": self.micro_batches,
            "assumed_mfu": ASSUMED_MFU,
            "assumed_device_flops": H800_FLOPS,
            "tokens_per_s": round(self.tokens_per_s),
            "tokens": self.tokens,
            "hours": self.hours,
            "measured": False,
        }

    def lines(self) -> list[str]:
        """Lines for people."""
        s, m = self.settings, self.memory
        parts = ("weights", "gradients", "optimizer", "activations", "logits")
        gib = {name: getattr(m, name) / 2**30 for name in parts}
        total = (m.per_rank_bytes + OVERHEAD_BYTES) / 2**30
        lines = [
            f"{self.shape.family}, {self.shape.parameters / 1e9:.2f} billion weights, {s.dtype}",
            f"{s.ranks} ranks: {s.data_parallel} data x {s.tensor_parallel} tensor x "
            f"{s.pipeline_parallel} pipeline",
            f"a step: {s.batch_tokens:,} tokens, {self.micro_batches} micro-batches a rank of "
            f"at most {self.micro_tokens:,}",
            "memory of a rank, computed:",
            *(f"  {name:<12}{size:7.1f} GiB" for name, size in gib.items()),
            f"  {'overhead':<12}{OVERHEAD_BYTES / 2**30:7.1f} GiB (CUDA context, buffers; assumed)",
            f"  {'together':<12}{total:7.1f} GiB",
            f"speed, computed at {ASSUMED_MFU:.0%} of {H800_FLOPS / 1e12:.0f} Tflop/s a device: "
            f"{self.tokens_per_s:,.0f} tokens/s",
        ]
        if self.hours is not None:
            lines.append(f"a run of {self.tokens:,} tokens: {self.hours:.2f} hours, start-up left out")
        return [*lines, "Nothing here is measured."]


def plan_cost(config_file: Path, settings: TrainSettings, tokens: int | None = None) -> Cost:
    """Compute what a run takes on CUDA devices with TransformerEngine.

    Args:
        config_file: The base's `config.json`; no weights are needed.
        settings: The trainer's.
        tokens: Training tokens of a run.

    Raises:
        BaseModelError: The file cannot be read, or the architecture cannot be mapped.
        ConfigError: The backend has no estimate, or the parallel sizes do not divide the model.
    """
    if settings.backend != "megatron":
        raise ConfigError(
            f"estimates are made for trainer.backend=megatron, not {settings.backend}",
            where="trainer.backend",
            hint="choose a preset, e.g. trainer=qwen3-1.7b-8x80gb",
        )
    try:
        config = orjson.loads(config_file.read_bytes())
        family = str(config["model_type"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BaseModelError(
            f"cannot be read as a model's configuration: {error}", where=str(config_file)
        ) from None
    shape = shape_of(config, family, str(config_file))
    check_parallel(shape, settings)
    micro = settings.micro_batch_tokens or _DEFAULT_MICRO_TOKENS
    per_rank = -(-settings.batch_tokens // settings.data_parallel)
    return Cost(
        shape=shape,
        settings=settings,
        memory=estimate(shape, settings, min(micro, per_rank), fused=True),
        micro_tokens=min(micro, per_rank),
        micro_batches=-(-per_rank // micro),
        tokens_per_s=settings.ranks * H800_FLOPS * ASSUMED_MFU / token_operations(shape, settings),
        tokens=tokens,
    )


def token_operations(shape: DecoderShape, settings: TrainSettings) -> float:
    """Return floating-point operations a token that the model needs; recomputed ones are included.

    Attention is counted over half of the longest row, as if every row were as long as allowed.
    """
    embedding = 0 if shape.tied else shape.vocab * shape.hidden
    passes = 8 if settings.recompute else 6
    weights = passes * (shape.parameters - embedding)
    attention = 2 * passes * shape.layers * shape.heads * shape.head_dim * settings.sequence_tokens / 2
    return float(weights + attention)
