"""The failure-case analyst: what the parent's checkpoints get wrong on the dev suites, and what taught it.

Evidence per leaf: how often answers fail by form, by content, by being cut; the pool's supply; and, for
failing items, the nearest training prompts (rapidfuzz) and how many of those rows break their own
requirements. Rule: act on the leaves that lose most, by what their nearest rows show: none -> write some;
wrong content -> correct it; wrong form -> edit it; sound but few -> give them weight.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from autosft.engine.nearest import nearest_texts
from autosft.engine.words import hash_texts
from autosft.subagents.analyst import abstention, pick, proposal
from autosft.subagents.evidence import Evidence, Finding, Sources
from autosft.subagents.rows import Checked, check_rows, mean, mended_frac, spread
from autosft.types import ActionCall

ITEMS_PER_LEAF = 8
NEAREST_ROWS = 5
# Up to so many rows every one is compared with each failing prompt; in larger pools candidates are looked up.
POOL_ROWS = 20_000
SHORT_SUPPLY = 0.35
TEACHES_WRONG = 0.2
MENDS = 0.1
MAX_OPTIONS = 3
# How many of the weakest leaves get which factor, one idea after the other.
WEIGHT_STEPS = ((3, 2.0), (2, 3.0), (5, 1.5))


def collect(sources: Sources) -> list[Finding]:
    """Measure failures per leaf, the supply behind each, and what the nearest rows teach."""
    rows = check_rows(sources.pool, sources.ctx)
    supply: dict[str, list[Checked]] = defaultdict(list)
    for row in rows:
        supply[row.leaf].append(row)
    place = {item.id: index for index, item in enumerate(sources.items)}
    failing: dict[str, list[int]] = defaultdict(list)
    counts: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for verdicts in sources.verdicts.values():
        for verdict in verdicts:
            index, tally = place[verdict.item], counts[verdict.leaf]
            tally["n"] += 1
            if verdict.strict:
                continue
            tally["form_failing"] += not verdict.form
            tally["content_failing"] += not verdict.content
            tally["truncated"] += verdict.truncated
            if index not in failing[verdict.leaf]:
                failing[verdict.leaf].append(index)
    nearest = _nearest(sources, rows, failing)
    content_bad = [r.index for r in rows if not r.content]
    mends = {
        name: mended_frac(
            sources.pool, content_bad, ActionCall("resupervise/program", {"program": name}), sources.ctx
        )
        for name in sources.programs
    }
    findings = [
        Finding("program", name, {"mended_frac": round(frac, 4)}) for name, frac in sorted(mends.items())
    ]
    findings.append(Finding("pool", "all", {"content_failing": len(content_bad), "rows": len(rows)}))
    for leaf, score in sources.leaf_scores.items():
        tally, near = counts[leaf], nearest.get(leaf, [])
        n = max(1.0, tally["n"])
        values: dict[str, float | int | str] = {
            "score": round(score, 6),
            "form_failing_frac": round(tally["form_failing"] / n, 4),
            "content_failing_frac": round(tally["content_failing"] / n, 4),
            "truncated_frac": round(tally["truncated"] / n, 4),
            "supply_rows": len(supply[leaf]),
            "supply_passing": sum(r.passes for r in supply[leaf]),
            "nearest_rows": len(near),
            "nearest_form_failing_frac": round(mean(not r.form for r in near), 4),
            "nearest_content_failing_frac": round(mean(not r.content for r in near), 4),
        }
        findings.append(Finding("leaf", leaf, values))
    return findings


def _nearest(
    sources: Sources, rows: list[Checked], failing: dict[str, list[int]]
) -> dict[str, list[Checked]]:
    """Return leaf -> training rows nearest to its failing prompts."""
    import numpy as np
    from rapidfuzz import fuzz, process

    prompts = [row.prompt[:2000] for row in sources.pool.rows()]
    found: dict[str, list[Checked]] = {}
    if not prompts:
        return found
    hashed = hash_texts(prompts) if len(prompts) > POOL_ROWS else None
    for leaf, indices in failing.items():
        queries = [sources.items[i].messages[-1].content[:2000] for i in spread(indices, ITEMS_PER_LEAF)]
        if hashed is not None:
            places, _ = nearest_texts(queries, prompts, NEAREST_ROWS, hashed=hashed)
            found[leaf] = [rows[int(j)] for line in places for j in line if j >= 0]
            continue
        likeness = process.cdist(queries, prompts, scorer=fuzz.token_set_ratio, workers=1)
        best = np.argsort(-likeness, axis=1, kind="stable")[:, :NEAREST_ROWS]
        found[leaf] = [rows[int(j)] for line in best for j in line]
    return found


def propose(evidence: Evidence) -> dict[str, Any]:
    """Act on the largest losses by what their nearest rows show."""
    leaves = evidence.of("leaf")
    if not leaves:
        return abstention("nothing was scored")
    losses = sorted(leaves, key=lambda leaf: (leaves[leaf]["score"], leaf))
    options = [*_writings(evidence, losses), *_corrections(evidence), *_edits(evidence, losses)]
    options.sort(key=lambda option: (-option.gain, option.claim))
    batches = [options[i : i + MAX_OPTIONS] for i in range(0, len(options), MAX_OPTIONS)]
    weighted = [_weights(evidence, losses, n, factor) for n, factor in WEIGHT_STEPS]
    candidates = [_together(batch, evidence) for batch in batches]
    candidates += [found for found in weighted if found is not None]
    return pick(candidates, evidence, "no leaf has rows to give weight to")


def _together(options: list[_Option], evidence: Evidence) -> dict[str, Any]:
    """Return one proposal of several options; a leaf is promised the most that one of them promises."""
    predicted: dict[str, float] = {}
    for option in options:
        for leaf, delta in option.deltas.items():
            predicted[leaf] = max(predicted.get(leaf, 0.0), delta)
    claim = "; ".join(option.claim for option in options)
    return proposal(claim.capitalize() + ".", [option.action for option in options], predicted, evidence)


@dataclass(frozen=True, slots=True)
class _Option:
    """One action with its reason and the leaf deltas it promises."""

    claim: str
    action: tuple[str, dict[str, Any]]
    deltas: dict[str, float]

    @property
    def gain(self) -> float:
        return sum(self.deltas.values())


def _writings(evidence: Evidence, losses: list[str]) -> list[_Option]:
    """Write rows for leaves with hardly any sound ones, as many as a typical leaf has."""
    leaves, programs = evidence.of("leaf"), evidence.of("program")
    if not programs:
        return []
    typical = sorted(int(v["supply_passing"]) for v in leaves.values())[len(leaves) // 2]
    short = [leaf for leaf in losses if leaves[leaf]["supply_passing"] < SHORT_SUPPLY * max(1, typical)]
    return [
        _Option(
            f"the pool has {leaves[leaf]['supply_passing']} sound rows for {leaf}; new ones will teach it",
            (
                "synthesize/template",
                {"program": next(iter(programs)), "leaf": leaf, "rows": max(40, typical)},
            ),
            {leaf: 0.5 * (1 - leaves[leaf]["score"])},
        )
        for leaf in short
    ]


def _corrections(evidence: Evidence) -> list[_Option]:
    """Correct wrong content by a program that was seen to mend it."""
    leaves, programs = evidence.of("leaf"), evidence.of("program")
    able = {name: v["mended_frac"] for name, v in programs.items() if v["mended_frac"] >= MENDS}
    wrong = evidence.of("pool")["all"]["content_failing"]
    if not able or not wrong:
        return []
    name = max(sorted(able), key=lambda n: able[n])
    deltas = {
        leaf: 0.4 * v["content_failing_frac"] * v["nearest_content_failing_frac"]
        for leaf, v in leaves.items()
    }
    return [
        _Option(
            f"{wrong} rows state wrong content and the program {name} mends {able[name]:.0%} of those",
            ("resupervise/program", {"program": name, "checks": "content"}),
            {leaf: delta for leaf, delta in deltas.items() if delta > 0} or dict.fromkeys(leaves, 0.01),
        )
    ]


def _edits(evidence: Evidence, losses: list[str]) -> list[_Option]:
    """Edit the rows of leaves whose failures lie near rows of wrong form."""
    leaves = evidence.of("leaf")
    bad = [leaf for leaf in losses if leaves[leaf]["nearest_form_failing_frac"] >= TEACHES_WRONG]
    if not bad:
        return []
    deltas = {
        leaf: 0.4 * (1 - leaves[leaf]["score"]) * leaves[leaf]["nearest_form_failing_frac"] for leaf in bad
    }
    claim = f"rows nearest to failures break their requirement in {len(bad)} leaves; editing helps"
    return [_Option(claim, ("repair/verifier_edit", {"leaves": sorted(bad)}), deltas)]


def _weights(evidence: Evidence, losses: list[str], n: int, factor: float) -> dict[str, Any] | None:
    """Give weight to the weakest leaves whose rows look sound."""
    leaves = evidence.of("leaf")
    weak = [leaf for leaf in losses if leaves[leaf]["supply_passing"] > 0][:n]
    if not weak:
        return None
    return proposal(
        f"Rows look sound where answers fail; {', '.join(weak)} need more weight.",
        [("mix/leaf_weights", {"factors": dict.fromkeys(weak, factor)})],
        {leaf: 0.15 * (1 - leaves[leaf]["score"]) for leaf in weak},
        evidence,
    )
