"""The policy `mix-only`: an agent that only ever re-weights, the collapse that AutoSFT's pilot fell into.

Source: AutoSFT (arXiv:2610.22194), pilot: 32 of 33 rounds re-weighted the mixture. Here it is a baseline
with good
evidence: it sees every leaf's score and supply and moves budget to the weakest leaves, a new way each round.
"""

from __future__ import annotations

from typing import Any

from autosft.subagents.analyst import abstention, proposal
from autosft.subagents.evidence import Evidence, Finding, Sources
from autosft.subagents.rows import PLAIN

# One a round: how many of the weakest leaves, their factor, plain chat's factor; then from the start, higher.
STEPS = ((4, 2.0, 0.5), (3, 3.0, 1.0), (6, 1.5, 0.5), (2, 4.0, 0.7), (8, 1.3, 0.6), (1, 3.0, 1.0))


def collect(sources: Sources) -> list[Finding]:
    """Measure every leaf's score and rows."""
    rows = {leaf: 0 for leaf in sources.leaf_scores}
    plain = 0
    for leaf in sources.pool.leaves:
        if leaf in rows:
            rows[leaf] += 1
        plain += leaf is None
    findings = [
        Finding("leaf", leaf, {"score": round(score, 6), "rows": rows[leaf]})
        for leaf, score in sources.leaf_scores.items()
    ]
    return [*findings, Finding("plain", PLAIN, {"rows": plain})]


def propose(evidence: Evidence) -> dict[str, Any]:
    """Move budget to the weakest leaves that have rows."""
    leaves = evidence.of("leaf")
    weak = sorted(
        (leaf for leaf in leaves if leaves[leaf]["rows"]), key=lambda leaf: (leaves[leaf]["score"], leaf)
    )
    if not weak:
        return abstention("no scored leaf has rows")
    turn, lap = (evidence.round - 1) % len(STEPS), (evidence.round - 1) // len(STEPS)
    n, factor, plain = STEPS[turn]
    params: dict[str, Any] = {"factors": dict.fromkeys(weak[:n], factor + 0.5 * lap)}
    if evidence.of("plain")[PLAIN]["rows"]:
        params["plain"] = plain
    return proposal(
        f"More budget for {', '.join(weak[:n])}.",
        [("mix/leaf_weights", params)],
        {leaf: 0.1 * (1 - leaves[leaf]["score"]) for leaf in weak[:n]},
        evidence,
    )
