"""The research-history analyst: what was tried, what it was predicted to do and did, and what never was.

Evidence: per round its families, predicted and actual change; proposals that were never run; families never
used; how each leaf moved. Rule: a family that was never tried, aimed at the weakest leaves; else the best
proposal that was set aside last round; else more budget for what has moved least.
"""

from __future__ import annotations

from typing import Any

import orjson

from autosft.subagents.analyst import pick, proposal
from autosft.subagents.evidence import Evidence, Finding, Sources
from autosft.subagents.rows import mean
from autosft.types import FAMILIES

STUCK = 0.05


def collect(sources: Sources) -> list[Finding]:
    """Summarise rounds, leaves, families and proposals that were set aside."""
    findings = []
    for past in sources.rounds:
        predicted = mean(past.predicted.values()) * len(past.predicted) / max(1, len(past.leaf_scores))
        values: dict[str, float | int | str] = {
            "families": " ".join(past.families),
            "kinds": " ".join(past.kinds),
            "predicted": round(predicted, 4),
            "actual": round(past.delta or 0.0, 4),
            "outcome": past.outcome,
        }
        findings.append(Finding("round", str(past.round), values))
    used = {family for past in sources.rounds for family in past.families}
    findings.append(
        Finding("families", "never_used", {"names": " ".join(f for f in FAMILIES if f not in used)})
    )
    first = sources.rounds[0].leaf_scores if sources.rounds else {}
    supply = {leaf: 0 for leaf in sources.leaf_scores}
    for leaf in sources.pool.leaves:
        if leaf in supply:
            supply[leaf] += 1
    for leaf, score in sources.leaf_scores.items():
        moved = score - first.get(leaf, score)
        findings.append(
            Finding(
                "leaf",
                leaf,
                {"score": round(score, 6), "moved": round(moved, 6), "supply_rows": supply[leaf]},
            )
        )
    run = {_actions(p.reply) for p in sources.proposals if p.adopted}
    for number, past_proposal in enumerate(sources.proposals):
        reply = past_proposal.reply
        if not past_proposal.adopted and _actions(reply) not in run:
            gain = sum(reply["predicted"].values()) / max(1, len(sources.leaf_scores))
            values = {"analyst": past_proposal.analyst, "round": past_proposal.round, "gain": round(gain, 4)}
            values["actions"] = _actions(reply)
            values["predicted"] = orjson.dumps(reply["predicted"], option=orjson.OPT_SORT_KEYS).decode()
            findings.append(Finding("set_aside", str(number), values))
    return findings


def _actions(reply: Any) -> str:
    return orjson.dumps(reply["actions"], option=orjson.OPT_SORT_KEYS).decode()


def propose(evidence: Evidence) -> dict[str, Any]:
    """Try a family that never was, else pick up what was set aside, else go further with what moved least."""
    aside, leaves = evidence.of("set_aside"), evidence.of("leaf")
    never = str(evidence.of("families")["never_used"]["names"]).split()
    weak = sorted(leaves, key=lambda leaf: (leaves[leaf]["score"], leaf))
    supplied = [leaf for leaf in weak if leaves[leaf]["supply_rows"] > 0]
    candidates = []
    if "order" in never:
        predicted = {leaf: 0.1 * (1 - leaves[leaf]["score"]) for leaf in leaves}
        claim = "Order was never tried; sound rows last leave the better habits."
        candidates.append(proposal(claim, [("order/verified_last", {})], predicted, evidence))
    if "mix" in never and supplied:
        claim = "The mixture was never changed; the weakest leaves get twice their share."
        candidates.append(_more(claim, supplied[:5], 2.0, 0.15, evidence))
    recent = [v for v in aside.values() if v["round"] == evidence.round - 1]
    for found in sorted(recent, key=lambda v: (-v["gain"], v["actions"])):
        actions = [(a["kind"], a["params"]) for a in orjson.loads(found["actions"])]
        claim = f"The proposal of the {found['analyst']} analyst of round {found['round']} was never run."
        candidates.append(proposal(claim, actions, orjson.loads(found["predicted"]), evidence))
    stuck = [leaf for leaf in supplied if leaves[leaf]["moved"] < STUCK][:4] or supplied[:3]
    if stuck:
        claim = f"{', '.join(stuck)} moved least so far; they get more of the budget."
        candidates += [_more(claim, stuck, factor, 0.1, evidence) for factor in (1.5, 2.5)]
    return pick(candidates, evidence, "there is nothing on record to go on from")


def _more(claim: str, leaves: list[str], factor: float, promise: float, evidence: Evidence) -> dict[str, Any]:
    """Return the proposal of more weight for some leaves."""
    scores = evidence.of("leaf")
    predicted = {leaf: promise * (1 - scores[leaf]["score"]) for leaf in leaves}
    return proposal(
        claim, [("mix/leaf_weights", {"factors": dict.fromkeys(leaves, factor)})], predicted, evidence
    )
