"""A decision as plain data, and the hypotheses written from it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from autosft.artifacts import Artifact
from autosft.memory import Hypothesis
from autosft.meta.decide import Choice, Trial, extend
from autosft.subagents import Abstention
from autosft.types import Recipe


def baseline_hypothesis(recipe: Recipe) -> Hypothesis:
    """Return round 0's hypothesis: it is the reference and predicts nothing."""
    return Hypothesis(
        round=0,
        recipe=recipe.fingerprint,
        claim="Reference: the pool as it was given, at the campaign's budget.",
        predicted={},
        predicted_score=0.0,
        success={"metric": "score", "at_least": 0.0},
        abort={"metric": "score", "below": -1.0},
    )


def decided_hypothesis(number: int, decision: Artifact) -> Hypothesis:
    """Return the hypothesis that a decision states; its criteria are measured against the parent."""
    data = decision.data
    return Hypothesis(
        round=number,
        recipe=data["recipe_fingerprint"],
        claim=data["claim"],
        predicted=data["predicted"],
        predicted_score=data["predicted_score"],
        success={"metric": "score", "above_parent_by": 0.0},
        abort={"metric": "score", "below_parent_by": 0.05},
        evidence=tuple(data["evidence"]),
    )


def decision_headline(decision: Artifact) -> dict[str, Any]:
    """Return what the journal says of a decision."""
    keys = ("parent", "accepted", "rejected", "abstained", "bundled", "kinds")
    return {key: decision.data[key] for key in keys}


def decision_data(
    number: int, parent: int, recipe: Recipe, choice: Choice, abstained: list[Abstention]
) -> dict[str, Any]:
    """Return a decision as plain data: the recipe it makes, what was accepted and why the rest was not.

    Args:
        number: Round being planned.
        parent: Round it starts from.
        recipe: The parent's recipe.
        choice: What was chosen.
        abstained: Analysts without a proposal.
    """
    accepted = choice.accepted
    proposals = [t.proposal for t in accepted]
    new = extend(recipe, [call for p in proposals for call in p.calls])
    predicted: dict[str, float] = {}
    for proposal in proposals:
        for leaf, delta in proposal.predicted.items():
            predicted[leaf] = max(predicted.get(leaf, -1.0), delta)
    lines = [
        f"{t.proposal.analyst} proposes {_kinds(t)}: accepted ({t.gain:+.3f} predicted)" for t in accepted
    ]
    lines += [f"{t.proposal.analyst} proposes {_kinds(t)}: rejected, {why}" for t, why in choice.rejected]
    lines += [f"{a.analyst} abstains: {a.reason}" for a in abstained]
    return {
        "round": number,
        "parent": parent,
        "recipe": new.to_json(),
        "recipe_fingerprint": new.fingerprint,
        "accepted": [p.model_dump(mode="json") for p in proposals],
        "rejected": [
            {"proposal": t.proposal.model_dump(mode="json"), "why": why} for t, why in choice.rejected
        ],
        "abstained": [a.model_dump(mode="json") for a in abstained],
        "bundled": choice.bundled,
        "kinds": [call.kind for p in proposals for call in p.calls],
        "claim": " ".join(p.claim for p in proposals),
        "predicted": predicted,
        "predicted_score": sum(t.gain for t in accepted),
        "evidence": sorted({e for p in proposals for e in p.evidence}),
        "lines": lines,
        "trials": [{"analyst": t.proposal.analyst, "diffs": [asdict(d) for d in t.diffs]} for t in accepted],
    }


def _kinds(trial: Trial) -> str:
    return " + ".join(call.kind for call in trial.proposal.calls)
