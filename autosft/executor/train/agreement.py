"""What every trainer backend shares: a step's learning rate, and what build and run must agree on.

Source: cosine schedule, arXiv:1608.03983, section 3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from autosft.errors import ArtifactError
from autosft.executor.builds import TrainingSet
from autosft.executor.train import TrainJob
from autosft.types import TrainSettings


def learning_rate(step: int, steps: int, settings: TrainSettings) -> float:
    """Return the rate of a step (from 0): linear warm-up to `lr`, then cosine, `min_lr` at the last step."""
    warmup = max(1, round(settings.warmup_frac * steps))
    if step < warmup:
        return settings.lr * (step + 1) / warmup
    done = (step + 1 - warmup) / max(1, steps - warmup)
    return settings.min_lr + (settings.lr - settings.min_lr) * 0.5 * (1.0 + math.cos(math.pi * done))


def require_vocab(job: TrainJob, data: TrainingSet) -> None:
    """Refuse a build made with another tokenizer.

    Raises:
        ArtifactError: It holds a token the base has no embedding of.
    """
    highest = int(data.tokens.max()) if len(data.tokens) else 0
    if highest >= job.base.vocab:
        raise ArtifactError(
            f"the build holds token {highest}, the base has {job.base.vocab}",
            where=str(job.build.path),
            hint="the build was made with another tokenizer",
        )


def require_plan(job: TrainJob, totals: Mapping[str, Any]) -> None:
    """Compare what was consumed with what the build promised (I2).

    Raises:
        ArtifactError: Tokens, loss tokens or steps differ.
    """
    promised = (job.build.data.get("plans") or {}).get(str(job.seed)) or {}
    names = {"train_tokens": "train_tokens", "loss_tokens": "loss_tokens", "steps": "optimizer_steps"}
    for name, total in names.items():
        if name in promised and promised[name] != totals[total]:
            raise ArtifactError(
                f"the build promises {promised[name]} {name}, the trainer consumed {totals[total]}",
                where=str(job.build.path),
                hint="the build's receipt and its plan do not belong together; build it again",
            )
