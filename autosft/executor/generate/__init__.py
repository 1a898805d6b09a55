"""Generation backends, one file each: a module with `generate(job, report) -> GenerateResult`.

The listing is closed: a settings file can name a backend, never a module.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

from autosft.errors import ConfigError
from autosft.executor.prompts import Prompts
from autosft.types import GenerateSettings

GENERATORS: Mapping[str, str] = {
    "transformers": "autosft.executor.generate.in_process",
    "vllm": "autosft.executor.generate.vllm_server",
    "vllm-offline": "autosft.executor.generate.vllm_offline",
}

Report = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True)
class GenerateJob:
    """What a generation backend gets.

    Attributes:
        checkpoint: A Hugging Face folder.
        prompts: Encoded prompts.
        settings: How to answer.
        seed: Decides sampling.
        batch_size: Prompts side by side; at most the settings'.
    """

    checkpoint: Path
    prompts: Prompts
    settings: GenerateSettings
    seed: int
    batch_size: int


@dataclass(frozen=True, slots=True)
class Generated:
    """One answer.

    Attributes:
        item: Item id.
        sample: Number of the sample, from 0.
        text: Without the end-of-turn token and other special tokens.
        truncated: It did not end by itself.
        tokens: Generated tokens.
    """

    item: str
    sample: int
    text: str
    truncated: bool
    tokens: int


class Generator(Protocol):
    """A generation backend's module."""

    #: Part of the fingerprint of every output: raise it when equal inputs give other answers.
    VERSION: int

    def generate(self, job: GenerateJob, report: Report) -> list[Generated]:
        """Answer every prompt, in item order, then by sample."""
        ...


def load_generator(name: str) -> Generator:
    """Return a backend by name.

    Raises:
        ConfigError: There is none of that name.
    """
    if name not in GENERATORS:
        raise ConfigError(
            f"no generation backend {name!r}", where="generate.backend", hint=f"one of {sorted(GENERATORS)}"
        )
    return cast(Generator, importlib.import_module(GENERATORS[name]))
