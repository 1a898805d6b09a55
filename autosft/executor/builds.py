"""A build folder as the trainer reads it: tokens, masks, and the plan of one seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autosft.artifacts import Artifact
from autosft.errors import ArtifactError


@dataclass(frozen=True)
class TrainingSet:
    """Rows of a build and the order one seed trains them in.

    Attributes:
        tokens: int32, all rows one after another.
        mask: uint8, 1 where the token carries loss.
        offsets: int64, rows + 1.
        ids: Row ids.
        sources: Source of each row.
        leaves: Leaf of each row, None where it has none.
        order: int32, row index of each position of the plan.
        step_starts: int64, steps + 1, into `order`.
        sequence_of: int64, packed sequence of each position.
    """

    tokens: NDArray[np.int32]
    mask: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    ids: list[str]
    sources: list[str]
    leaves: list[str | None]
    order: NDArray[np.int32]
    step_starts: NDArray[np.int64]
    sequence_of: NDArray[np.int64]

    @property
    def steps(self) -> int:
        """Optimiser steps of the plan."""
        return len(self.step_starts) - 1

    def row_tokens(self, row: int) -> NDArray[np.int32]:
        """Token ids of a row."""
        return self.tokens[self.offsets[row] : self.offsets[row + 1]]

    def row_mask(self, row: int) -> NDArray[np.uint8]:
        """Loss mask of a row."""
        return self.mask[self.offsets[row] : self.offsets[row + 1]]


def plan_name(seed: int) -> str:
    """Return the file name of a seed's plan."""
    return f"plan-{seed}.npz"


def plan_sha(build: Artifact, seed: int) -> str:
    """Return the hash of a seed's plan.

    Raises:
        ArtifactError: The build has no plan for the seed.
    """
    sha = build.files.get(plan_name(seed))
    if sha is None:
        known = sorted(name for name in build.files if name.startswith("plan-"))
        raise ArtifactError(
            f"the build has no plan for seed {seed}",
            where=str(build.path),
            hint=f"build it with this seed; it has {known}",
        )
    return sha


def read_training_set(build: Artifact, seed: int) -> TrainingSet:
    """Read a build for one seed and check that the plan fits the rows.

    Raises:
        ArtifactError: Files are missing or contradict one another.
    """
    import pyarrow.parquet as pq

    try:
        tokens = np.load(build.file("tokens.npy"), mmap_mode="r")
        mask = np.load(build.file("mask.npy"), mmap_mode="r")
        offsets = np.load(build.file("offsets.npy"))
        with np.load(build.file(plan_name(seed))) as plan:
            order, step_starts, sequence_starts = plan["rows"], plan["step_starts"], plan["sequence_starts"]
        table = pq.ParquetFile(build.file("rows.parquet")).read(columns=["id", "source", "leaf"])
    except (OSError, ValueError, KeyError) as error:
        raise ArtifactError(f"the build cannot be read: {error}", where=str(build.path)) from None
    n_rows = table.num_rows
    _require(build, len(offsets) == n_rows + 1, f"{n_rows} rows but {len(offsets)} offsets")
    _require(build, len(tokens) == len(mask) == int(offsets[-1]), "tokens, mask and offsets differ in length")
    _require(build, len(order) > 0, "the plan is empty")
    _require(
        build,
        bool(((order >= 0) & (order < n_rows)).all()),
        "the plan names a row the build does not have",
    )
    _require(build, bool((np.diff(offsets)[order] > 0).all()), "the plan trains a row without tokens")
    bounds = step_starts[0] == 0 and step_starts[-1] == len(order) and bool((np.diff(step_starts) > 0).all())
    _require(build, bool(bounds), "the plan's steps do not cover its positions")
    starts = sequence_starts[sequence_starts < len(order)]
    _require(build, len(starts) > 0 and starts[0] == 0, "the plan's sequences do not cover its positions")
    marks = np.zeros(len(order), dtype=np.int64)
    marks[starts] = 1
    return TrainingSet(
        tokens=tokens,
        mask=mask,
        offsets=offsets,
        ids=table.column("id").to_pylist(),
        sources=table.column("source").to_pylist(),
        leaves=table.column("leaf").to_pylist(),
        order=order,
        step_starts=step_starts,
        sequence_of=np.cumsum(marks) - 1,
    )


def _require(build: Artifact, fits: bool, what: str) -> None:
    if not fits:
        raise ArtifactError(
            f"the build contradicts itself: {what}", where=str(build.path), hint="build it again"
        )
