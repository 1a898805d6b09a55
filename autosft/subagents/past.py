"""The research-history analyst: what was tried, what it was predicted to do and did, and what never was.

Evidence: per round its families, predicted and actual change; proposals that were never run; families never
used; how each leaf moved. Rule: a family that was never tried, aimed at the weakest leaves; else the best
proposal that was set aside last round; else more budget for what has moved least.
"""

from __future__ import annotations

from typing import Any

import orjson

from autosft.subagents.analyst import abstention, proposal
from autosft.subagents.evidence import Evidence, Finding, Sources
from autosft.subagents.rows import mean
from autosft.types import FAMILIES


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
    aside = evidence.of("set_aside")
    leaves = evidence.of("leaf")
    never = str(evidence.of("families")["never_used"]["names"]).split()
    weak = sorted(leaves, key=lambda leaf: (leaves[leaf]["score"], leaf))
    supplied = [leaf for leaf in weak if leaves[leaf]["supply_rows"] > 0]
    if "order" in never:
        predicted = {leaf: 0.1 * (1 - leaves[leaf]["score"]) for leaf in leaves}
        return proposal(
            "Order was never tried; short responses first ease the start.",
            [("order/curriculum", {"by": "length"})],
            predicted,
            evidence,
        )
    if "mix" in never and supplied:
        predicted = {leaf: 0.15 * (1 - leaves[leaf]["score"]) for leaf in supplied[:5]}
        return proposal(
            "The mixture was never changed; the weakest leaves get twice their share.",
            [("mix/leaf_weights", {"factors": dict.fromkeys(supplied[:5], 2.0)})],
            predicted,
            evidence,
        )
    recent = {number: v for number, v in aside.items() if v["round"] == evidence.round - 1}
    if recent:
        best = max(recent.values(), key=lambda v: (v["gain"], v["round"], v["actions"]))
        actions = [(a["kind"], a["params"]) for a in orjson.loads(best["actions"])]
        claim = f"The proposal of the {best['analyst']} analyst of round {best['round']} was never run."
        return proposal(claim, actions, orjson.loads(best["predicted"]), evidence)
    stuck = [leaf for leaf in supplied if leaves[leaf]["moved"] < 0.05][:4] or supplied[:3]
    if stuck:
        factor = 1.5 + 0.25 * evidence.round
        predicted = {leaf: 0.1 * (1 - leaves[leaf]["score"]) for leaf in stuck}
        return proposal(
            f"{', '.join(stuck)} moved least so far; they get more of the budget.",
            [("mix/leaf_weights", {"factors": dict.fromkeys(stuck, factor)})],
            predicted,
            evidence,
        )
    return abstention("everything on record was tried")
