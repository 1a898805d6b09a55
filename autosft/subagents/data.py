"""The training-data analyst: what the rows of the parent's pool are like, without looking at any model.

Evidence: rows, tokens and passing shares per leaf and source, copies, and what share of the failing rows a
mechanical edit or a program would mend (found by trying). Rule: mend what can be mended, drop what cannot,
drop copies.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from autosft.subagents.analyst import pick, proposal
from autosft.subagents.evidence import Evidence, Finding, Sources
from autosft.subagents.rows import PLAIN, Checked, check_rows, mean, mended_frac
from autosft.types import ActionCall

MENDABLE = 0.5
COPIES_FRAC = 0.02
FAILING_FRAC = 0.03


def collect(sources: Sources) -> list[Finding]:
    """Measure the pool per leaf, per source and as a whole."""
    pool, ctx = sources.pool, sources.ctx
    rows = check_rows(pool, ctx)
    tokens, _ = ctx.encoder.counts(pool)
    total = max(1, int(tokens.sum()))
    by_leaf: dict[str, list[Checked]] = defaultdict(list)
    by_source: dict[str, list[Checked]] = defaultdict(list)
    for row in rows:
        by_leaf[row.leaf].append(row)
        by_source[row.source].append(row)
    findings = []
    for leaf in [*sources.leaf_scores, *sorted(by_leaf.keys() - sources.leaf_scores.keys())]:
        members = by_leaf.get(leaf, [])
        form_bad = [r.index for r in members if not r.form]
        content_bad = [r.index for r in members if not r.content]
        edit = ActionCall("repair/verifier_edit", {})
        correct = [ActionCall("resupervise/program", {"program": name}) for name in sources.programs]
        values: dict[str, float | int | str] = {
            "rows": len(members),
            "tokens": int(sum(tokens[r.index] for r in members)),
            "token_frac": round(sum(int(tokens[r.index]) for r in members) / total, 6),
            "form_failing": len(form_bad),
            "content_failing": len(content_bad),
            "form_mendable_frac": round(mended_frac(pool, form_bad, edit, ctx), 4),
            "content_mendable_frac": round(
                max([0.0, *(mended_frac(pool, content_bad, c, ctx) for c in correct)]), 4
            ),
            "dev_score": round(sources.leaf_scores.get(leaf, -1.0), 6),
        }
        findings.append(Finding("leaf", leaf, values))
    for source in sorted(by_source):
        members = by_source[source]
        failing = mean(not r.passes for r in members)
        findings.append(Finding("source", source, {"rows": len(members), "failing_frac": round(failing, 4)}))
    copies = sum(n - 1 for n in Counter(row_id.split(".")[0] for row_id in pool.ids).values())
    findings.append(Finding("pool", "all", {"rows": len(pool), "tokens": total, "copies": copies}))
    return findings


def propose(evidence: Evidence) -> dict[str, Any]:
    """Mend by edit the leaves where edits work, drop the form failures where they do not, drop copies."""
    leaves, pool = evidence.of("leaf"), evidence.of("pool")["all"]
    candidates = [found for found in (_mend(evidence), _drop_content(evidence)) if found is not None]
    scored = {leaf: v for leaf, v in leaves.items() if v["dev_score"] >= 0}
    small = {leaf: 0.02 * (1 - v["dev_score"]) for leaf, v in scored.items()}
    if candidates or pool["rows"] > 1:
        claim = "Prompts worded in more ways carry over to wordings that no row has."
        action = ("repair/prompt_reword", {"change": "vary", "frac": 0.5})
        candidates.append(proposal(claim, [action], small, evidence))
        claim = "Rows that nearly repeat others waste budget."
        candidates.append(proposal(claim, [("prune/near_duplicates", {"threshold": 0.85})], small, evidence))
    return pick(candidates, evidence, "there are no rows")


def _mend(evidence: Evidence) -> dict[str, Any] | None:
    """Edit what edits mend, drop what they do not, drop copies."""
    leaves, pool = evidence.of("leaf"), evidence.of("pool")["all"]
    scored = {leaf: v for leaf, v in leaves.items() if v["dev_score"] >= 0}
    mend: list[str] = []
    drop: list[str] = []
    for leaf, v in leaves.items():
        if leaf == PLAIN or v["rows"] == 0 or v["form_failing"] / v["rows"] < FAILING_FRAC:
            continue
        (mend if v["form_mendable_frac"] >= MENDABLE else drop).append(leaf)
    actions: list[tuple[str, dict[str, Any]]] = []
    claims = []
    predicted: dict[str, float] = {}
    if mend:
        actions.append(("repair/verifier_edit", {"leaves": sorted(mend)}))
        claims.append(f"editing responses so that they meet their requirement helps {len(mend)} leaves")
    if mend or drop:
        actions.append(("prune/verifier", {"checks": "form"}))
        claims.append("dropping rows whose form stays wrong helps the rest")
    for leaf in (*mend, *drop):
        if leaf in scored:
            bad = scored[leaf]["form_failing"] / max(1, scored[leaf]["rows"])
            predicted[leaf] = 0.5 * (1 - scored[leaf]["dev_score"]) * bad
    if pool["copies"] > COPIES_FRAC * pool["rows"]:
        actions.append(("prune/exact_duplicates", {}))
        claims.append(f"{pool['copies']} copies waste budget")
        for leaf in scored:
            predicted[leaf] = predicted.get(leaf, 0.0) + 0.1 * pool["copies"] / pool["rows"]
    if not actions:
        return None
    return proposal("; ".join(claims).capitalize() + ".", actions, predicted or _least(scored), evidence)


def _drop_content(evidence: Evidence) -> dict[str, Any] | None:
    """Drop the rows whose content is wrong, where there are enough of them."""
    leaves = evidence.of("leaf")
    wrong = [leaf for leaf, v in leaves.items() if v["content_failing"] > FAILING_FRAC * max(1, v["rows"])]
    if not wrong:
        return None
    scored = {leaf: v for leaf, v in leaves.items() if v["dev_score"] >= 0}
    predicted = {
        leaf: 0.3 * (1 - scored[leaf]["dev_score"]) * scored[leaf]["content_failing"] / scored[leaf]["rows"]
        for leaf in wrong
        if leaf in scored
    }
    claim = f"Rows with wrong content remain in {len(wrong)} leaves; dropping them helps."
    return proposal(claim, [("prune/verifier", {"checks": "content"})], predicted or _least(scored), evidence)


def _least(scored: dict[str, Any]) -> dict[str, float]:
    return dict.fromkeys(scored, 0.01)
