"""Causal language models behind one interface: an own decoder for Qwen3 shapes, transformers for the rest.

A backend is one file with a class that satisfies `CausalModel`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import torch

    from autosft.executor.base import BaseInfo
    from autosft.executor.generate.answers import Answer, DecodePlan
    from autosft.executor.packing import PackedBatch


class CausalModel(Protocol):
    """What trainer, exporter and generator need of a model."""

    #: Tokens of one forward pass that keep memory moderate and speed high.
    forward_tokens: int

    def token_losses(self, batch: PackedBatch) -> torch.Tensor:
        """Return the loss of each supervised token, float32, shape (S,), 0 on padding; differentiable."""
        ...

    def optimiser_groups(self) -> tuple[list[torch.nn.Parameter], list[torch.nn.Parameter]]:
        """Return (parameters with weight decay, parameters without)."""
        ...

    def state(self) -> dict[str, torch.Tensor]:
        """Return Hugging Face name -> tensor; tied tensors once."""
        ...

    def load_state(self, state: Mapping[str, torch.Tensor], where: str = "") -> None:
        """Copy weights in."""
        ...

    def answer(
        self, prompts: Sequence[Sequence[int]], plan: DecodePlan, progress: Callable[[int], None]
    ) -> list[Answer]:
        """Continue each prompt; calls `progress` with the number of finished prompts."""
        ...


def load_model(base: BaseInfo, dtype: str, *, device: str = "cpu") -> CausalModel:
    """Load a model with float32 weights.

    Args:
        base: A checked model folder.
        dtype: Type of the matrix products: `float32` or `bfloat16`.
        device: Where it lives.

    Raises:
        BaseModelError: The weights do not fit the configuration.
    """
    import torch

    compute = {"float32": torch.float32, "bfloat16": torch.bfloat16}[dtype]
    if base.native:
        from autosft.executor.models.native_qwen3 import load_native

        return load_native(base, compute, device)
    from autosft.executor.models.hf_causal import load_hf

    return load_hf(base, compute, device)


def pick_device() -> str:
    """Return `cuda` where there is one, else `cpu`."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"
