"""The learning-dynamics analyst: how the parent's runs learned, from losses, positions and seeds.

Evidence: loss per leaf on the last pass, share of failing rows in the last part of the budget against the
whole, concentration of sources over the budget, plain chat's share and loss, what the highest-loss rows
are, spread between seeds. Rule: put sound rows last where failing ones stand there; take budget from what
is learned already; give it to what is not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from autosft.subagents.analyst import pick, proposal
from autosft.subagents.evidence import Evidence, Finding, Sources
from autosft.subagents.rows import PLAIN, Checked, check_rows, mean

LAST_FRAC = 0.2
CHAT_FRAC = 0.08
MUCH_CHAT_FRAC = 0.2
FEW_FAILING = 0.02
LEARNED = 0.9
SOURCE_EXCESS = 0.25


def collect(sources: Sources) -> list[Finding]:
    """Measure losses, positions and seed spread of the parent's runs."""
    import pyarrow.parquet as pq

    rows = check_rows(sources.pool, sources.ctx)
    tokens, _ = sources.ctx.encoder.counts(sources.pool)
    losses: dict[str, list[float]] = defaultdict(list)
    per_row: dict[int, list[float]] = defaultdict(list)
    last_failing: list[float] = []
    all_failing: list[float] = []
    last_sources: dict[str, float] = defaultdict(float)
    for folder in sources.runs.values():
        table = pq.read_table(folder / "row_loss.parquet", columns=["row", "leaf", "last_loss"])
        for row, leaf, loss in zip(
            *(table.column(n).to_pylist() for n in ("row", "leaf", "last_loss")), strict=True
        ):
            if loss is not None:
                losses[leaf or PLAIN].append(loss)
                per_row[row].append(loss)
        consumed = pq.read_table(folder / "consumed.parquet", columns=["row", "tokens"])
        order, sizes = consumed.column("row").to_numpy(), consumed.column("tokens").to_numpy()
        late = np.cumsum(sizes) > (1 - LAST_FRAC) * sizes.sum()
        bad = np.array([not rows[int(i)].passes for i in order])
        last_failing.append(float(bad[late].mean()) if late.any() else 0.0)
        all_failing.append(float(bad.mean()))
        for i, size in zip(order[late], sizes[late], strict=True):
            last_sources[rows[int(i)].source] += float(size) / float(sizes[late].sum()) / len(sources.runs)
    findings = [
        Finding(
            "position",
            "last",
            {
                "budget_frac": LAST_FRAC,
                "failing_frac": round(mean(last_failing), 4),
                "failing_frac_overall": round(mean(all_failing), 4),
                "source_excess": round(_source_excess(rows, tokens, last_sources), 4),
            },
        )
    ]
    total = max(1, int(tokens.sum()))
    weights = sources.pool.weights
    weighted = float((tokens * weights).sum()) or 1.0
    for leaf in sorted({r.leaf for r in rows} | set(sources.leaf_scores)):
        members = [r.index for r in rows if r.leaf == leaf]
        share = float(sum(tokens[i] * weights[i] for i in members)) / weighted
        findings.append(
            Finding(
                "leaf",
                leaf,
                {
                    "loss": round(mean(losses[leaf]), 4),
                    "token_frac": round(share, 6),
                    "rows": len(members),
                    "score": round(sources.leaf_scores.get(leaf, -1.0), 6),
                    "unweighted_frac": round(sum(int(tokens[i]) for i in members) / total, 6),
                },
            )
        )
    findings.append(_outliers(rows, per_row))
    by_seed = [mean(v.strict for v in verdicts) for verdicts in sources.verdicts.values()]
    findings.append(
        Finding("seeds", "score", {"spread": round(max(by_seed) - min(by_seed), 4), "n": len(by_seed)})
    )
    return findings


def _source_excess(rows: list[Checked], tokens: Any, last: dict[str, float]) -> float:
    """Return by how much the last part's share of some source exceeds its share of the pool's tokens."""
    total = max(1.0, float(tokens.sum()))
    share: dict[str, float] = defaultdict(float)
    for row in rows:
        share[row.source] += float(tokens[row.index]) / total
    return max((last[source] - share[source] for source in last), default=0.0)


def _outliers(rows: list[Checked], per_row: dict[int, list[float]]) -> Finding:
    """Return what the 5 % of rows with the highest loss are."""
    ranked = sorted(per_row, key=lambda i: (-mean(per_row[i]), i))[: max(1, len(per_row) // 20)]
    values = {"rows": len(ranked), "failing_frac": round(mean(not rows[i].passes for i in ranked), 4)}
    return Finding("outliers", "loss", values)


def propose(evidence: Evidence) -> dict[str, Any]:
    """Re-order where the end of the budget is worse than the rest; move budget to what is not learned."""
    scored = {leaf: v for leaf, v in evidence.of("leaf").items() if v["score"] >= 0}
    ordered, mixed = _reorder(evidence, scored), _remix(evidence, scored, n=4, factor=2.0)
    first = [found for found in (ordered, mixed) if found is not None]
    candidates = [_join(first, evidence)] if first else []
    if len(first) > 1:
        candidates.append(_join([mixed], evidence) if mixed else _join([ordered], evidence))
    further = _remix(evidence, scored, n=7, factor=1.5)
    if further is not None:
        candidates.append(_join([further], evidence))
    return pick(candidates, evidence, "losses, positions and shares give no reason to move anything")


_Part = tuple[str, tuple[str, dict[str, Any]], dict[str, float]]


def _join(parts: Sequence[_Part | None], evidence: Evidence) -> dict[str, Any]:
    """Return one proposal of several parts; a leaf is promised the most that one of them promises."""
    known = [part for part in parts if part is not None]
    predicted: dict[str, float] = {}
    for _, _, deltas in known:
        for leaf, delta in deltas.items():
            predicted[leaf] = max(predicted.get(leaf, 0.0), delta)
    claim = "; ".join(part[0] for part in known)
    return proposal(claim[:1].upper() + claim[1:] + ".", [part[1] for part in known], predicted, evidence)


def _reorder(evidence: Evidence, scored: dict[str, Any]) -> _Part | None:
    """Put sound rows last, or spread what the end of the budget is full of."""
    position = evidence.of("position")["last"]
    if position["failing_frac_overall"] > FEW_FAILING and position["failing_frac"] > FEW_FAILING:
        claim = (
            f"{position['failing_frac']:.0%} of rows in the last {LAST_FRAC:.0%} of the budget fail their "
            "checks; sound rows last leave the better habits"
        )
        return (
            claim,
            ("order/verified_last", {}),
            {leaf: 0.15 * (1 - v["score"]) for leaf, v in scored.items()},
        )
    if position["source_excess"] > SOURCE_EXCESS:
        claim = "the budget ends on one source; a shuffle spreads it"
        return claim, ("order/shuffle", {}), {leaf: 0.05 * (1 - v["score"]) for leaf, v in scored.items()}
    return None


def _remix(evidence: Evidence, scored: dict[str, Any], *, n: int, factor: float) -> _Part | None:
    """Give the weakest leaves that have rows more of the budget, and plain chat less where it takes much."""
    weak = sorted((v["score"], leaf) for leaf, v in scored.items() if v["rows"] > 0 and v["score"] < LEARNED)[
        :n
    ]
    params: dict[str, Any] = {"factors": {leaf: factor for _, leaf in weak}}
    claims = [f"more budget for {', '.join(leaf for _, leaf in weak)}"] if weak else []
    chat = evidence.of("leaf").get(PLAIN)
    if chat and chat["token_frac"] > CHAT_FRAC:
        params["plain"] = 0.3 if chat["token_frac"] > MUCH_CHAT_FRAC else 0.5
        claims.append(f"plain chat takes {chat['token_frac']:.0%} of it at loss {chat['loss']:.2f}")
    if not claims:
        return None
    deltas = {leaf: 0.15 * (1 - score) for score, leaf in weak}
    return "; ".join(claims), ("mix/leaf_weights", params), deltas or dict.fromkeys(scored, 0.01)
