"""Trainer backends, one file each: a module with `train(job, report) -> TrainResult`.

The listing is closed: a settings file can name a backend, never a module.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

from autosft.artifacts import Artifact
from autosft.errors import ConfigError
from autosft.executor.base import BaseInfo
from autosft.types import TrainSettings

TRAINERS: Mapping[str, str] = {
    "torch": "autosft.executor.train.torch_trainer",
    "megatron": "autosft.executor.train.megatron_trainer",
}

Report = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True)
class TrainJob:
    """What a trainer gets.

    Attributes:
        base: The base to start from.
        base_fingerprint: What the base must be (I1); verified before the first step.
        build: The training set.
        seed: Which of its plans to follow.
        settings: How to train.
        forward_tokens: Most tokens of one forward pass; 0 leaves it to the model. Never changes the batch.
        folder: Where weights and tables go.
    """

    base: BaseInfo
    base_fingerprint: str
    build: Artifact
    seed: int
    settings: TrainSettings
    forward_tokens: int
    folder: Path


@dataclass(frozen=True, slots=True)
class TrainResult:
    """What a trainer returns.

    Attributes:
        data: Equal for equal inputs: train_tokens, loss_tokens, optimizer_steps, first_loss, final_loss.
        measured: May differ: wall_s, tokens_per_s.
    """

    data: Mapping[str, Any]
    measured: Mapping[str, Any]


class Trainer(Protocol):
    """A trainer backend's module."""

    #: Part of the fingerprint of every run: raise it when equal inputs give other weights.
    VERSION: int

    def train(self, job: TrainJob, report: Report) -> TrainResult:
        """Train; write model.safetensors, loss_curve, row_loss and consumed (parquet) into `job.folder`."""
        ...


def load_trainer(name: str) -> Trainer:
    """Return a backend by name.

    Raises:
        ConfigError: There is none of that name.
    """
    if name not in TRAINERS:
        raise ConfigError(
            f"no trainer backend {name!r}", where="trainer.backend", hint=f"one of {sorted(TRAINERS)}"
        )
    return cast(Trainer, importlib.import_module(TRAINERS[name]))
