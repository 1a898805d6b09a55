"""AdamW over torch's fused kernel, and gradient clipping.

`torch.optim` imports the compiler stack on first use, more than a second in each worker process; a run of
the embedded base takes little longer than that. Parity with `torch.optim.AdamW` is tested.

Source: arXiv:1711.05101, algorithm 2.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from autosft.types import TrainSettings

_EPS = 1e-8


class AdamW:
    """Updates parameters in place from their gradients.

    Args:
        decayed: Parameters with weight decay.
        plain: Parameters without.
        settings: Betas, weight decay and clipping norm.
    """

    def __init__(
        self,
        decayed: Sequence[torch.nn.Parameter],
        plain: Sequence[torch.nn.Parameter],
        settings: TrainSettings,
    ) -> None:
        self._settings = settings
        self._groups = [
            _Group(list(parameters), decay)
            for parameters, decay in ((decayed, settings.weight_decay), (plain, 0.0))
            if parameters
        ]

    @torch.no_grad()
    def step(self, lr: float) -> float:
        """Clip, update and clear the gradients; does not update where the norm is not finite.

        Args:
            lr: Learning rate of this step.

        Returns:
            The gradients' norm before clipping.
        """
        grads = [p.grad for group in self._groups for p in group.parameters if p.grad is not None]
        if not grads:
            return 0.0
        norms = torch.stack([torch.linalg.vector_norm(g, dtype=torch.float32) for g in grads])
        norm = float(torch.linalg.vector_norm(norms))
        if norm < float("inf"):
            if norm > self._settings.clip_norm > 0.0:
                torch._foreach_mul_(grads, self._settings.clip_norm / (norm + 1e-6))
            for group in self._groups:
                group.update(lr, self._settings)
        for group in self._groups:
            for parameter in group.parameters:
                parameter.grad = None
        return norm


class _Group:
    """Parameters that share a weight decay, with their moments."""

    def __init__(self, parameters: list[torch.nn.Parameter], weight_decay: float) -> None:
        self.parameters, self._weight_decay = parameters, weight_decay
        self._mean = [torch.zeros_like(p) for p in parameters]
        self._square = [torch.zeros_like(p) for p in parameters]
        self._steps = [torch.zeros((), dtype=torch.float32, device=p.device) for p in parameters]

    def update(self, lr: float, settings: TrainSettings) -> None:
        present = [k for k, p in enumerate(self.parameters) if p.grad is not None]
        steps = [self._steps[k] for k in present]
        if not steps:
            return
        torch._foreach_add_(steps, 1.0)
        torch._fused_adamw_(
            [self.parameters[k] for k in present],
            [grad for k in present if (grad := self.parameters[k].grad) is not None],
            [self._mean[k] for k in present],
            [self._square[k] for k in present],
            [],
            steps,
            lr=lr,
            beta1=settings.beta1,
            beta2=settings.beta2,
            weight_decay=self._weight_decay,
            eps=_EPS,
            amsgrad=False,
            maximize=False,
        )
