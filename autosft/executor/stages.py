"""The four stages of a run as artifacts: their fingerprints, and the receipt read back from them.

A fingerprint covers inputs only, so it is known before anything has run; `execute` uses it to see which seeds
are finished without starting a process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from autosft.artifacts import Artifact, ArtifactStore
from autosft.errors import ArtifactError
from autosft.identity import fingerprint
from autosft.types import GenerateSettings, SeedReceipt, TrainSettings

STAGES = ("train", "checkpoint", "generate", "score")

#: Settings that bound or report a run and never change its result.
_NOT_IDENTITY = ("timeout_s", "log_every_steps")


@dataclass(frozen=True, slots=True)
class Job:
    """One seed's run, as plain data.

    Attributes:
        store: Root of the artifact store.
        base: The base's folder.
        base_fingerprint: What it must be.
        build: Fingerprint of the build artifact.
        plan: Hash of the seed's plan.
        items_path: The evaluation items.
        items: Their hash.
        prompts: Fingerprint of the prompts artifact.
        seed: Training seed.
        train: Training settings.
        generate: Generation settings.
        forward_tokens: Most tokens of a forward pass, 0 for the model's own; lowered after a lack of memory.
        batch_size: Prompts side by side; lowered after a lack of memory.
        parent: Process id of the starter; the worker ends with it.
        progress: File for progress lines.
        result: File for the outcome.
    """

    store: str
    base: str
    base_fingerprint: str
    build: str
    plan: str
    items_path: str
    items: str
    prompts: str
    seed: int
    train: TrainSettings
    generate: GenerateSettings
    forward_tokens: int = 0
    batch_size: int = 0
    parent: int = 0
    progress: str = ""
    result: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Job:
        """Read what `to_json` wrote."""
        values = {
            **data,
            "train": TrainSettings(**data["train"]),
            "generate": GenerateSettings(**data["generate"]),
        }
        return cls(**values)

    def keys(self) -> dict[str, str]:
        """Return stage -> fingerprint of its artifact."""
        settings = {k: v for k, v in asdict(self.train).items() if k not in _NOT_IDENTITY}
        train = fingerprint(
            [
                "train",
                _versions("train", self.train.backend),
                self.base_fingerprint,
                self.build,
                self.plan,
                self.seed,
                settings,
            ]
        )
        checkpoint = fingerprint(["checkpoint", _versions("convert", ""), train, self.prompts])
        generate = fingerprint(
            [
                "generate",
                _versions("generate", self.generate.backend),
                checkpoint,
                asdict(self.generate),
                self.seed,
            ]
        )
        score = fingerprint(["score", _versions("score", ""), generate, self.items])
        return dict(zip(STAGES, (train, checkpoint, generate, score), strict=True))


def _versions(step: str, backend: str) -> int:
    from autosft.executor import convert
    from autosft.executor.generate import load_generator
    from autosft.executor.train import load_trainer

    if step == "train":
        return load_trainer(backend).VERSION
    if step == "generate":
        return load_generator(backend).VERSION
    return convert.VERSION if step == "convert" else SCORE_VERSION


#: Raise it when `items.parquet` of equal outputs would differ.
SCORE_VERSION = 2


def finished(job: Job, store: ArtifactStore) -> dict[str, Artifact]:
    """Return the stages that exist, in order; a damaged one may be missing before one that is there."""
    found: dict[str, Artifact] = {}
    for stage, key in job.keys().items():
        artifact = store.find(stage, key)
        if artifact is not None:
            found[stage] = artifact
    return found


def receipt(job: Job, store: ArtifactStore, attempts: int, cause: str = "", detail: str = "") -> SeedReceipt:
    """Read a seed's receipt from its artifacts.

    Raises:
        ArtifactError: No cause is given and a stage is missing.
    """
    found = finished(job, store)
    if not cause and "score" not in found:
        raise ArtifactError(f"seed {job.seed} has no score", where=str(store.root), hint="run it again")
    summary: dict[str, Any] = {}
    for stage in STAGES:
        if stage in found:
            summary.update(found[stage].data)
    summary["device_s"] = round(sum(float(a.measured.get("wall_s", 0.0)) for a in found.values()), 3)
    if "train" in found:
        summary["tokens_per_s"] = found["train"].measured.get("tokens_per_s")
    keys = job.keys()

    def key(stage: str) -> str:
        return keys[stage] if stage in found else ""

    return SeedReceipt(
        seed=job.seed,
        status="failed" if cause else "ok",
        cause=cause,
        detail=detail,
        attempts=attempts,
        train=key("train"),
        checkpoint=str(found["checkpoint"].path) if "checkpoint" in found else "",
        outputs=key("generate"),
        scores=key("score"),
        summary=summary,
    )


def log_stem(job: Job) -> Path:
    """Return the file name stem of a job's spec, progress, result and log."""
    return Path(f"{job.keys()['train']}-seed{job.seed}")
