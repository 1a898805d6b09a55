"""What the ranks of a run are told, and what they leave for the worker that launched them: plain files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from autosft.artifacts import Artifact, write_atomic
from autosft.types import TrainSettings

#: A rank's connection to another one broke; the cause lies with the other.
PEER_LOST = "peer_lost"


@dataclass(frozen=True, slots=True)
class RankJob:
    """One run.

    Attributes:
        base: The base's folder, verified.
        build: The build's folder.
        key: The build's fingerprint.
        files: The build's file names and hashes.
        seed: Which of its plans to follow.
        settings: How to train.
        most_tokens: Most tokens of a micro-batch.
        folder: Where tables go and weights come together.
        scratch: Progress lines, errors and weights of single pipeline stages.
        parent: Process id of the launcher's starter.
    """

    base: str
    build: str
    key: str
    files: Mapping[str, str]
    seed: int
    settings: TrainSettings
    most_tokens: int
    folder: str
    scratch: str
    parent: int

    @property
    def progress(self) -> Path:
        """File of progress lines."""
        return Path(self.scratch) / "progress"

    @property
    def totals(self) -> Path:
        """File of the run's totals."""
        return Path(self.scratch) / "totals.json"

    def stage_weights(self, stage: int) -> Path:
        """File of a pipeline stage's weights."""
        return Path(self.scratch) / f"stage-{stage}.safetensors"

    def write_error(self, rank: int, kind: str, text: str) -> None:
        """Leave a rank's reason to stop."""
        write_atomic(
            Path(self.scratch) / f"error-{rank}.json",
            orjson.dumps({"rank": rank, "kind": kind, "text": text}),
        )

    def errors(self) -> list[dict[str, Any]]:
        """Return the reasons ranks left."""
        return [orjson.loads(file.read_bytes()) for file in sorted(Path(self.scratch).glob("error-*.json"))]

    def write(self) -> Path:
        """Write it where the ranks read it."""
        path = Path(self.scratch) / "job.json"
        path.write_bytes(orjson.dumps(asdict(self)))
        return path


def read_job(path: Path) -> RankJob:
    """Read what `RankJob.write` wrote."""
    data: Mapping[str, Any] = orjson.loads(path.read_bytes())
    return RankJob(**{**data, "settings": TrainSettings(**data["settings"])})


def load_build(job: RankJob) -> Artifact:
    """Return the run's build; the starter has read and checked its record."""
    return Artifact("build", job.key, Path(job.build), {}, {}, job.files)
