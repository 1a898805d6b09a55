"""How much memory a run needs, computed before anything is launched. An estimate, never a measurement.

Weights, gradients and optimiser state follow from the number of parameters exactly; activations follow the
per-layer count of arXiv:2205.05198 (section 4), adapted to grouped queries, SwiGLU and norms of queries and
keys, without the softmax's square where attention is fused. The count is tested against what autograd keeps
in Megatron's own layers on a CPU.
"""

from __future__ import annotations

from dataclasses import dataclass

from autosft.errors import ExecutorError
from autosft.executor.train.megatron.shape import DecoderShape
from autosft.types import TrainSettings

#: Peak dense bfloat16 operations a second by a part of the device's name, from the vendors' data sheets.
_PEAKS = {"H200": 989e12, "H100": 989e12, "H800": 989e12, "A100": 312e12, "A800": 312e12}
#: CUDA context, NCCL buffers and the allocator's slack on top of what is counted.
OVERHEAD_BYTES = 3 * 2**30


@dataclass(frozen=True, slots=True)
class Memory:
    """Computed bytes of the rank that needs most.

    Attributes:
        weights: Weights in the training type.
        gradients: Gradients, float32.
        optimizer: Moments, and float32 master weights where the training type is bfloat16.
        activations: Kept for the backward pass of the micro-batches in flight.
        logits: Logits and their gradient of one micro-batch.
    """

    weights: int
    gradients: int
    optimizer: int
    activations: int
    logits: int
    ranks: int

    @property
    def per_rank_bytes(self) -> int:
        """All of it."""
        return self.weights + self.gradients + self.optimizer + self.activations + self.logits

    def text(self) -> str:
        """One line for people."""
        parts = ("weights", "gradients", "optimizer", "activations", "logits")
        named = ", ".join(f"{name} {getattr(self, name) / 2**30:.1f}" for name in parts)
        return f"{self.per_rank_bytes / 2**30:.1f} GiB a rank (computed: {named})"


def estimate(
    shape: DecoderShape, settings: TrainSettings, micro_tokens: int, *, fused: bool | None = None
) -> Memory:
    """Estimate a run's memory.

    Args:
        shape: The base.
        settings: Type, parallel sizes, recomputation, distributed optimiser.
        micro_tokens: Tokens of a micro-batch.
        fused: Attention keeps no square of scores; None asks this machine.
    """
    fused = _fused_attention() if fused is None else fused
    tensor, pipeline = settings.tensor_parallel, settings.pipeline_parallel
    half = settings.dtype == "bfloat16"
    width = 2 if half else 4
    embedding = shape.vocab * shape.hidden
    layers = shape.parameters - embedding * (1 if shape.tied else 2)
    # A single stage holds both embeddings (once if tied); of several, the outer ones hold one each.
    held = embedding * (2 if pipeline == 1 and not shape.tied else 1)
    parameters = (layers // pipeline + held) // tensor
    cut = settings.data_parallel if settings.distributed_optimizer else 1
    per_layer = _activation_bytes(shape, micro_tokens, width, tensor, fused, recompute=settings.recompute)
    in_flight = pipeline
    kept = per_layer * (shape.layers // pipeline) * in_flight
    if settings.recompute:
        # One layer at a time is computed again in full.
        kept += _activation_bytes(shape, micro_tokens, width, tensor, fused, recompute=False)
    return Memory(
        weights=parameters * width,
        gradients=parameters * 4,
        optimizer=parameters * (12 if half else 8) // cut,
        activations=kept,
        logits=micro_tokens * (shape.vocab // tensor) * (width + 4 + 4),
        ranks=settings.ranks,
    )


def _activation_bytes(
    shape: DecoderShape, tokens: int, width: int, tensor: int, fused: bool, *, recompute: bool
) -> int:
    """Bytes one layer keeps for its backward pass."""
    if recompute:
        return tokens * shape.hidden * width
    heads = shape.head_dim * (2 * shape.heads + 2 * shape.kv_heads)
    # Norms of queries and keys keep what goes in and what comes out, before and after the rotation.
    normed = 4 * shape.head_dim * (shape.heads + shape.kv_heads) if shape.qk_norm else 0
    # Whole: the norms' inputs and outputs and the residuals; cut: q, k, v, context, gate, up, product.
    each = 6 * shape.hidden + (2 * heads + normed + 4 * shape.intermediate) // tensor
    # Softmax in float32, and its copy in the training type where that is another.
    scores = 0 if fused else tokens * shape.heads * (4 if width == 4 else 4 + width) // tensor
    return tokens * (width * each + scores)


def _fused_attention() -> bool:
    from autosft.executor.train.megatron.model import uses_engine

    return uses_engine()


def require_room(memory: Memory) -> None:
    """Refuse a run that cannot fit, before it is launched.

    Raises:
        ExecutorError: More is needed than the devices, or this machine, have.
    """
    import torch

    if torch.cuda.is_available():
        devices = torch.cuda.device_count()
        if memory.ranks > devices:
            raise ExecutorError(
                f"{memory.ranks} ranks need as many devices, this machine has {devices}",
                where="trainer",
                hint="lower trainer.data_parallel, tensor_parallel or pipeline_parallel",
            )
        have = torch.cuda.get_device_properties(0).total_memory
        need = memory.per_rank_bytes + OVERHEAD_BYTES
        what = "the device"
    else:
        import psutil

        have, need, what = psutil.virtual_memory().total, memory.per_rank_bytes * memory.ranks, "this machine"
    if need > have:
        raise ExecutorError(
            f"{what} has {have / 2**30:.1f} GiB, the run needs about {need / 2**30:.1f}: {memory.text()}",
            where="trainer",
            hint="set trainer.recompute=true, trainer.distributed_optimizer=true, fewer "
            "trainer.micro_batch_tokens or more tensor_parallel ranks",
        )


def device_flops(dtype: str) -> float | None:
    """Return the first CUDA device's peak operations a second in bfloat16; None where it is not known."""
    import torch

    if not torch.cuda.is_available() or dtype != "bfloat16":
        return None
    name = torch.cuda.get_device_name(0)
    return next((peak for part, peak in _PEAKS.items() if part in name), None)
