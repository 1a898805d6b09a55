"""The `synthesis` component under the rules policy: new rows for every leaf whose supply of sound rows is
short.

It joins whatever the analysts' decision is, as long as it touches other rows. Each written row passes the
leaf's verifier, is unlike the rows there are, and is decontaminated by the build like any other.
"""

from __future__ import annotations

from typing import Any

from autosft.subagents.analyst import abstention, proposal
from autosft.subagents.evidence import Evidence, Finding, Sources
from autosft.subagents.rows import check_rows

NAME = "synthesis"
SHORT_SUPPLY = 0.5
LEAST_ROWS = 40
MAX_LEAVES = 3


def collect(sources: Sources) -> list[Finding]:
    """Count the sound rows of every leaf."""
    sound = dict.fromkeys(sources.leaf_scores, 0)
    for row in check_rows(sources.pool, sources.ctx):
        if row.leaf in sound and row.passes:
            sound[row.leaf] += 1
    findings = [
        Finding("leaf", leaf, {"score": round(score, 6), "sound_rows": sound[leaf]})
        for leaf, score in sources.leaf_scores.items()
    ]
    return findings + [Finding("program", name, {"name": name}) for name in sources.programs]


def propose(evidence: Evidence) -> dict[str, Any]:
    """Ask for rows for the leaves with the fewest sound ones, up to what a typical leaf has."""
    leaves, programs = evidence.of("leaf"), evidence.of("program")
    if not programs or not leaves:
        return abstention("no program writes rows")
    typical = sorted(int(v["sound_rows"]) for v in leaves.values())[len(leaves) // 2]
    wanted = max(LEAST_ROWS, typical)
    short = sorted(
        (leaf for leaf, v in leaves.items() if v["sound_rows"] < SHORT_SUPPLY * wanted),
        key=lambda leaf: (leaves[leaf]["sound_rows"], leaf),
    )[:MAX_LEAVES]
    if not short:
        return abstention("no leaf is short of sound rows")
    return proposal(
        f"Leaves short of sound rows get new ones: {', '.join(short)}.",
        [
            (
                "synthesize/template",
                # Another seed for each round: asking again must not write the same rows again.
                {
                    "program": next(iter(programs)),
                    "leaf": leaf,
                    "rows": wanted - int(leaves[leaf]["sound_rows"]),
                    "seed": evidence.round,
                },
            )
            for leaf in short
        ],
        {leaf: 0.4 * (1 - leaves[leaf]["score"]) for leaf in short},
        evidence,
    )
