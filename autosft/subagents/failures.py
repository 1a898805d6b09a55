"""The failure-case analyst: what the parent's checkpoints get wrong on the dev suites, and what taught it.

Evidence per leaf: how often answers fail by form, by content, by being cut; the pool's supply; and, for
failing items, the nearest training prompts (rapidfuzz) and how many of those rows break their own
requirements. Rule: act on the leaves that lose most, by what their nearest rows show: none -> write some;
wrong content -> correct it; wrong form -> edit it; sound but few -> give them weight.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from autosft.subagents.analyst import abstention, proposal
from autosft.subagents.evidence import Evidence, Finding, Sources
from autosft.subagents.rows import Checked, check_rows, mean, mended_frac, spread
from autosft.types import ActionCall

ITEMS_PER_LEAF = 8
NEAREST_ROWS = 5
# Rows compared with each failing prompt; larger pools are sampled evenly.
POOL_ROWS = 20_000
SHORT_SUPPLY = 0.35
TEACHES_WRONG = 0.2


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

    chosen = spread(range(len(rows)), POOL_ROWS)
    prompts = [sources.pool.row(i).prompt[:2000] for i in chosen]
    found: dict[str, list[Checked]] = {}
    if not prompts:
        return found
    for leaf, indices in failing.items():
        queries = [sources.items[i].messages[-1].content[:2000] for i in spread(indices, ITEMS_PER_LEAF)]
        likeness = process.cdist(queries, prompts, scorer=fuzz.token_set_ratio, workers=1)
        best = np.argsort(-likeness, axis=1, kind="stable")[:, :NEAREST_ROWS]
        found[leaf] = [rows[chosen[int(j)]] for line in best for j in line]
    return found


def propose(evidence: Evidence) -> dict[str, Any]:
    """Act on the largest losses by what their nearest rows show."""
    leaves = evidence.of("leaf")
    if not leaves:
        return abstention("nothing was scored")
    typical = sorted(int(v["supply_passing"]) for v in leaves.values())[len(leaves) // 2]
    losses = sorted(leaves, key=lambda leaf: (leaves[leaf]["score"], leaf))
    options: list[tuple[float, str, tuple[str, dict[str, Any]], dict[str, float]]] = []
    programs = evidence.of("program")
    empty = [leaf for leaf in losses if leaves[leaf]["supply_passing"] < SHORT_SUPPLY * max(1, typical)]
    if empty and programs:
        deltas = {leaf: 0.5 * (1 - leaves[leaf]["score"]) for leaf in empty}
        params = {"program": next(iter(programs)), "leaves": sorted(empty), "rows_per_leaf": max(40, typical)}
        names = ", ".join(sorted(empty))
        claim = f"the pool has too few sound rows for {names}; written ones will teach them"
        options.append((sum(deltas.values()), claim, ("synthesize/template", params), deltas))
    options += _corrections(evidence, leaves, programs)
    bad_form = [leaf for leaf in losses if leaves[leaf]["nearest_form_failing_frac"] >= TEACHES_WRONG]
    if bad_form:
        deltas = {
            leaf: 0.4 * (1 - leaves[leaf]["score"]) * leaves[leaf]["nearest_form_failing_frac"]
            for leaf in bad_form
        }
        claim = f"rows nearest to failures break their requirement in {len(bad_form)} leaves; editing helps"
        options.append(
            (sum(deltas.values()), claim, ("repair/verifier_edit", {"leaves": sorted(bad_form)}), deltas)
        )
    if not options:
        weak = [leaf for leaf in losses if leaves[leaf]["supply_passing"] > 0][:3]
        if not weak:
            return abstention("no leaf has rows to give weight to")
        deltas = {leaf: 0.15 * (1 - leaves[leaf]["score"]) for leaf in weak}
        factor = 2.0 if evidence.round % 2 else 3.0
        claim = f"rows look sound where answers fail; {', '.join(weak)} need more weight"
        options.append(
            (0.0, claim, ("mix/leaf_weights", {"weights": {leaf: factor for leaf in weak}}), deltas)
        )
    options.sort(key=lambda o: (-o[0], o[1]))
    chosen = options[:2]
    predicted: dict[str, float] = {}
    for _, _, _, deltas in chosen:
        for leaf, delta in deltas.items():
            predicted[leaf] = max(predicted.get(leaf, 0.0), delta)
    claims = "; ".join(claim for _, claim, _, _ in chosen)
    return proposal(claims.capitalize() + ".", [action for _, _, action, _ in chosen], predicted, evidence)


def _corrections(
    evidence: Evidence, leaves: dict[str, Any], programs: dict[str, Any]
) -> list[tuple[float, str, tuple[str, dict[str, Any]], dict[str, float]]]:
    """Return the option of correcting wrong content by a program that was seen to mend it."""
    able = {name: v["mended_frac"] for name, v in programs.items() if v["mended_frac"] >= 0.1}
    wrong = evidence.of("pool")["all"]["content_failing"]
    if not able or not wrong:
        return []
    name = max(sorted(able), key=lambda n: able[n])
    deltas = {
        leaf: 0.4 * v["content_failing_frac"] * v["nearest_content_failing_frac"]
        for leaf, v in leaves.items()
    }
    deltas = {leaf: delta for leaf, delta in deltas.items() if delta > 0} or {leaf: 0.01 for leaf in leaves}
    claim = f"{wrong} rows state wrong content and the program {name!r} mends {able[name]:.0%} of those tried"
    return [(sum(deltas.values()), claim, ("resupervise/program", {"program": name}), deltas)]
