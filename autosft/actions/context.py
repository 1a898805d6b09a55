"""What an action may use besides the pool: seeded randomness, verdicts, token counts, losses, programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from autosft.actions.decontaminate import BenchmarkIndex
from autosft.actions.programs import Program, load_program
from autosft.artifacts import ArtifactStore
from autosft.errors import ActionError, ArtifactError
from autosft.identity import fingerprint
from autosft.pool import Pool, RowEncoder, base_id
from autosft.pool.rows import requirements_json
from autosft.taxonomy import verify
from autosft.types import CONTENT_PREFIXES, Row

if TYPE_CHECKING:
    from autosft.taxonomy import Taxonomy


@dataclass(frozen=True)
class ActionContext:
    """The surroundings of a recipe's actions; equal contexts and pools give equal results.

    Attributes:
        seed: Seed of every random choice; `apply_recipe` sets it to the recipe's.
        encoder: Counts tokens.
        taxonomy: Tree of leaves, for leaf names.
        programs: Programs that actions may name: known names, or objects with the `Program` protocol.
        artifacts: Store that training artifacts and samples are read from.
        benchmarks: Digests of the dev suites. Never held-out ones: agents read which rows a
        diff names (I6).
        reasons: Row id -> why the action at work touched it; for people, never for decisions.
        tally: What the action at work counted besides, such as the yield of a gate.
    """

    seed: int
    encoder: RowEncoder
    taxonomy: Taxonomy | None = None
    programs: Sequence[str | Program] = ()
    artifacts: ArtifactStore | None = None
    benchmarks: Sequence[BenchmarkIndex] = ()
    reasons: dict[str, str] = field(default_factory=dict, repr=False, compare=False)
    tally: dict[str, int] = field(default_factory=dict, repr=False, compare=False)
    _verdicts: dict[tuple[str, str], dict[str, bool]] = field(default_factory=dict, repr=False, compare=False)

    def scoped(self, seed: int) -> ActionContext:
        """Return the context for one action: another seed, no reasons yet, the same memory of verdicts."""
        return replace(self, seed=seed, reasons={}, tally={})

    def rng(self, name: str, params: Any = None) -> np.random.Generator:
        """Return a generator that depends on the seed, a name and parameters only, not on what ran before."""
        return np.random.default_rng(int(fingerprint([self.seed, name, params]), 16))

    def passes(self, row: Row) -> dict[str, bool]:
        """Return the verdict on each requirement of a row; a repeated requirement id gets `#2`, `#3`, ...

        Raises:
            VerifierError: A requirement is unknown or its arguments do not fit.
        """
        key = (base_id(row.id), requirements_json(row.requirements))
        if key not in self._verdicts:
            verdicts: dict[str, bool] = {}
            for requirement in row.requirements:
                name, copy = requirement.id, 2
                while name in verdicts:
                    name, copy = f"{requirement.id}#{copy}", copy + 1
                verdicts[name] = verify(requirement, row.prompt, row.response)
            self._verdicts[key] = verdicts
        return dict(self._verdicts[key])

    def because(self, row: Row | str, reason: str) -> None:
        """Note why the action touches a row."""
        self.reasons[row if isinstance(row, str) else row.id] = reason

    def tokens(self, pool: Pool) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return training tokens of each row after truncation."""
        return self.encoder.counts(pool)[0]

    @property
    def program_names(self) -> tuple[str, ...]:
        """Names of the programs on offer."""
        return tuple(p if isinstance(p, str) else p.name for p in self.programs)

    def program(self, name: str) -> Program:
        """Return a program by name.

        Raises:
            ActionError: The campaign offers no program of that name.
        """
        known = dict(zip(self.program_names, self.programs, strict=True))
        if name not in known:
            raise ActionError(
                f"no program named {name!r}",
                where="params.program",
                hint=f"has: {', '.join(known) or 'none'}",
            )
        found = known[name]
        return load_program(found) if isinstance(found, str) else found

    def row_loss(self, artifact_fp: str) -> dict[str, float]:
        """Return row id -> mean loss per loss token when last trained on, from a `train` artifact.

        Raises:
            ActionError: There is no such artifact, or no store to read it from.
        """
        import pyarrow.parquet as pq

        if self.artifacts is None:
            raise ActionError("per-row losses need an artifact store", where="params.artifact")
        try:
            path = self.artifacts.load("train", artifact_fp).file("row_loss.parquet")
        except ArtifactError as error:
            raise ActionError(
                f"no per-row losses: {error.what}", where=f"params.artifact {artifact_fp!r}"
            ) from None
        table = pq.read_table(path, columns=["id", "last_loss"])
        pairs = zip(table.column("id").to_pylist(), table.column("last_loss").to_pylist(), strict=True)
        return {row_id: float(loss) for row_id, loss in pairs if loss is not None and np.isfinite(loss)}

    def samples(self, artifact_fp: str) -> dict[str, list[str]]:
        """Return content id -> complete answers of a checkpoint, by sample number, from a `samples` artifact.

        Answers that did not end by themselves are left out.

        Raises:
            ActionError: There is no such artifact, it is damaged, or there is no store to read it from.
        """
        import pyarrow.parquet as pq

        if self.artifacts is None:
            raise ActionError("a checkpoint's answers need an artifact store", where="params.artifact")
        try:
            # The answers become training data, so they are hashed again before they do.
            path = self.artifacts.load("samples", artifact_fp, check_files=True).file("samples.parquet")
        except ArtifactError as error:
            raise ActionError(
                f"no answers of a checkpoint: {error.what}",
                where=f"params.artifact {artifact_fp!r}",
                hint="make them with `executor.sample.sample_rows`",
            ) from None
        found: dict[str, list[str]] = {}
        for answer in pq.read_table(path, columns=["row", "text", "truncated"]).to_pylist():
            texts = found.setdefault(answer["row"], [])
            if not answer["truncated"]:
                texts.append(answer["text"])
        return found


def failing(verdicts: Mapping[str, bool], checks: str = "all") -> list[str]:
    """Return the requirements that fail, of all, of `content` ones or of `form` ones only."""
    return [name for name, passed in verdicts.items() if not passed and is_checked(name, checks)]


def is_checked(requirement: str, checks: str) -> bool:
    """Return whether a requirement belongs to `all`, `content` or `form` checks."""
    return checks == "all" or (checks == "content") == requirement.startswith(CONTENT_PREFIXES)
