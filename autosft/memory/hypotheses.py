"""Hypotheses: registered before training, frozen by submission, resolved by the measured result (I4).

States: open -> submitted -> supported | refuted | inconclusive | abandoned. All of it lives in the journal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from autosft.errors import HypothesisError
from autosft.identity import fingerprint
from autosft.memory.journal import Journal

Outcome = Literal["supported", "refuted", "inconclusive", "abandoned"]
OUTCOMES: tuple[Outcome, ...] = ("supported", "refuted", "inconclusive", "abandoned")


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """What a round expects, written down before anything is trained.

    Attributes:
        round: Round it belongs to.
        recipe: Fingerprint of the recipe it is about.
        claim: One sentence.
        predicted: Leaf -> predicted change of score against the parent round; may be empty for round 0.
        predicted_score: Predicted change of the campaign score.
        success: Measurable criterion, e.g. {"metric": "score", "at_least": 0.01}.
        abort: Criterion under which the round counts as failed, e.g. {"metric": "score", "below": -0.05}.
        evidence: Artifact ids it rests on.
    """

    round: int
    recipe: str
    claim: str
    predicted: Mapping[str, float]
    predicted_score: float
    success: Mapping[str, Any]
    abort: Mapping[str, Any]
    evidence: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """`h<round>-<hash>`: names this exact text."""
        return f"h{self.round}-{fingerprint(asdict(self))[:8]}"


class Hypotheses:
    """The registry over a campaign's journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def register(self, hypothesis: Hypothesis) -> str:
        """Write a hypothesis down; return its id.

        Raises:
            HypothesisError: The round has another hypothesis, or this one is incomplete.
        """
        where = f"round {hypothesis.round}"
        if not hypothesis.claim.strip():
            raise HypothesisError("a hypothesis needs a claim", where=where)
        if not hypothesis.success or not hypothesis.abort:
            raise HypothesisError("a hypothesis needs success and abort criteria", where=where)
        if hypothesis.round > 0 and not hypothesis.predicted:
            raise HypothesisError("a hypothesis needs predicted leaf deltas", where=where)
        known = self._journal.find("hypothesis.registered", str(hypothesis.round))
        if known is not None and known.data["id"] != hypothesis.id:
            raise HypothesisError(
                f"hypothesis {known.data['id']} is registered and cannot be edited",
                where=where,
                hint="resolve this round and register the new idea for the next one",
            )
        self._journal.append(
            "hypothesis.registered", str(hypothesis.round), {"id": hypothesis.id, **asdict(hypothesis)}
        )
        return hypothesis.id

    def submit(self, round_: int, recipe: str) -> str:
        """Freeze the round's hypothesis for training; return its id.

        Raises:
            HypothesisError: None is registered for the round, or it is about another recipe.
        """
        known = self._journal.find("hypothesis.registered", str(round_))
        if known is None:
            raise HypothesisError(
                "no hypothesis is registered",
                where=f"round {round_}",
                hint="register one before submitting a run",
            )
        if known.data["recipe"] != recipe:
            raise HypothesisError(
                f"hypothesis {known.data['id']} is about recipe {known.data['recipe']}, not {recipe}",
                where=f"round {round_}",
            )
        self._journal.append("hypothesis.submitted", str(round_), {"id": known.data["id"], "recipe": recipe})
        return str(known.data["id"])

    def require_submitted(self, round_: int, recipe: str) -> str:
        """Return the id of the round's submitted hypothesis.

        Raises:
            HypothesisError: The round was not submitted, or with another recipe.
        """
        known = self._journal.find("hypothesis.submitted", str(round_))
        if known is None or known.data["recipe"] != recipe:
            raise HypothesisError(
                f"recipe {recipe} was not submitted with a hypothesis",
                where=f"round {round_}",
                hint="submit it first",
            )
        return str(known.data["id"])

    def resolve(self, round_: int, outcome: Outcome, facts: Mapping[str, Any]) -> None:
        """Record what became of the round's hypothesis (predicted against actual).

        Raises:
            HypothesisError: Unknown outcome, or the round was never submitted.
        """
        if outcome not in OUTCOMES:
            raise HypothesisError(
                f"unknown outcome {outcome!r}", where=f"round {round_}", hint=f"one of {OUTCOMES}"
            )
        known = self._journal.find("hypothesis.submitted", str(round_))
        if known is None:
            raise HypothesisError("only a submitted hypothesis can be resolved", where=f"round {round_}")
        self._journal.append(
            "hypothesis.resolved", str(round_), {"id": known.data["id"], "outcome": outcome, **facts}
        )
