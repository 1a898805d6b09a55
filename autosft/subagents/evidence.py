"""Evidence: measured findings with the artifacts they come from, one kind of source an analyst.

A finding is numbers about a subject (a leaf, a source, a round), never prose from rows: what analysts of
any policy read is bounded and typed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from autosft.actions import ActionContext
from autosft.evals import ItemScore, Output
from autosft.pool import Pool
from autosft.taxonomy import Taxonomy
from autosft.types import EvalItem


@dataclass(frozen=True, slots=True)
class Finding:
    """One measurement: what was measured (`metric`), about what (`subject`), with which values."""

    metric: str
    subject: str
    values: Mapping[str, float | int | str]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one analyst knows this round.

    Attributes:
        analyst: The analyst it was collected for.
        round: Round being planned.
        findings: In a fixed order.
        artifacts: Ids of the artifacts it was measured on, `kind/fingerprint`.
        attempt: Proposals of this analyst that were already run from the same parent: equal evidence must not
            lead to the same proposal twice.
        families: Action families that proposals may use; None for all.
    """

    analyst: str
    round: int
    findings: tuple[Finding, ...]
    artifacts: tuple[str, ...]
    attempt: int = 0
    families: tuple[str, ...] | None = None

    def of(self, metric: str) -> dict[str, Mapping[str, Any]]:
        """Return subject -> values of one metric, in order."""
        return {f.subject: f.values for f in self.findings if f.metric == metric}

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        data = asdict(self)
        if self.families is None:
            del data["families"]
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Evidence:
        """Read what `to_json` wrote."""
        findings = tuple(Finding(f["metric"], f["subject"], f["values"]) for f in data["findings"])
        families = data.get("families")
        return cls(
            data["analyst"],
            data["round"],
            findings,
            tuple(data["artifacts"]),
            data["attempt"],
            None if families is None else tuple(families),
        )


@dataclass(frozen=True, slots=True)
class PastRound:
    """One recorded round as research history shows it."""

    round: int
    parent: int | None
    kinds: tuple[str, ...]
    families: tuple[str, ...]
    analysts: tuple[str, ...]
    score: float | None
    delta: float | None
    outcome: str
    predicted: Mapping[str, float]
    actual: Mapping[str, float]
    leaf_scores: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class PastProposal:
    """A proposal of an earlier round and what became of it."""

    round: int
    analyst: str
    reply: Mapping[str, Any]
    adopted: bool


@dataclass(frozen=True, slots=True)
class Sources:
    """Everything measured about the parent round; each collector reads its own part only.

    Attributes:
        round: Round being planned.
        pool: The parent's pool, its actions applied.
        ctx: Context for trying actions on parts of the pool.
        taxonomy: The leaves.
        items: Dev items, in order.
        outputs: Seed -> the model's answers, in item order.
        verdicts: Seed -> item scores, in item order.
        leaf_scores: Leaf -> the parent's mean score.
        runs: Seed -> folder of the training artifact (loss_curve, row_loss, consumed).
        rounds: Recorded rounds, oldest first.
        proposals: Earlier proposals, oldest first.
        artifacts: Ids of the artifacts above.
        programs: Names of the programs that actions may use.
        families: Action families that proposals may use; None for all.
    """

    round: int
    pool: Pool
    ctx: ActionContext
    taxonomy: Taxonomy
    items: tuple[EvalItem, ...]
    outputs: Mapping[int, list[Output]]
    verdicts: Mapping[int, list[ItemScore]]
    leaf_scores: Mapping[str, float]
    runs: Mapping[int, Path]
    rounds: tuple[PastRound, ...]
    proposals: tuple[PastProposal, ...]
    artifacts: tuple[str, ...]
    programs: tuple[str, ...]
    families: tuple[str, ...] | None = None
