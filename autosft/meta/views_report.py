"""Everything a report shows, computed from records: one read-only view, running campaigns included."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from autosft.artifacts import ArtifactStore
from autosft.errors import ArtifactError
from autosft.evals import (
    ScoreTable,
    compare,
    first_seed_bias,
    read_items,
    remeasure_bias,
    seed_noise_floor,
)
from autosft.memory import Entry
from autosft.meta import views
from autosft.meta.campaign import Facts, read_facts
from autosft.meta.history import History, RoundFacts
from autosft.meta.revise import strategy_metrics
from autosft.meta.scores import load_table
from autosft.meta.views_memory import hypotheses, lineage, open_history
from autosft.spend import read_ledger


def campaign_report(out: Path) -> dict[str, Any]:
    """Return what a report shows.

    Returns:
        `status`, `rounds`, `actions`, `hypotheses`, `lineage` (the views of those names); `facts` (what is
        frozen); `leaves` (leaf, path, and per round its score); `pool` (per round: rows, tokens, shares,
        warnings); `noise` (sd between training seeds, degrees of freedom, half width of the band of a round's
        mean); `bias` (first seed against the others; chosen-by seeds against fresh ones); `gain` (claimed
        best or incumbent against round 0, and on which seeds); `claims`; `strategy`; `spend`; `provenance`.
        `missing` names what could not be computed and why.

    Raises:
        CampaignError: There is no campaign in the folder.
        CorruptRecordError: Its journal is damaged.
    """
    facts = read_facts(out)
    entries, history = open_history(out)
    store = ArtifactStore(out / "artifacts")
    found: dict[str, Any] = {"noise": None, "bias": None, "gain": None, "missing": []}
    try:
        found.update(_measured(facts, history, store))
    except (ArtifactError, OSError) as error:
        found["missing"].append(f"comparisons over single items: {error}")
    return {
        "status": views.status(out),
        "facts": _frozen(facts),
        "rounds": views.rounds(out),
        "actions": views.actions(out),
        "hypotheses": hypotheses(out),
        "lineage": lineage(out),
        "leaves": _leaves(history),
        "pool": [_composition(r, store) for r in history.rounds if r.build],
        "claims": [_claim(r) for r in history.rounds if r.claim is not None and r.claim["attempted"]],
        "strategy": strategy_metrics(history),
        "revisions": [dict(e.data) for e in entries if e.kind == "revision.opened"],
        "spend": _spend(out),
        "provenance": _provenance(facts, history, entries),
        **found,
    }


def _frozen(facts: Facts) -> dict[str, Any]:
    keys = ("base", "base_fingerprint", "pool", "settings_fingerprint", "encoder", "items", "taxonomy")
    return {key: getattr(facts, key) for key in keys} | {
        "policy": facts.settings.get("policy.name"),
        "components": [
            key.split(".")[1] for key, on in facts.settings.items() if key.startswith("components.") and on
        ],
        "primary": list(facts.primary),
        "alpha": facts.settings.get("campaign.alpha"),
        "unique_tokens": facts.unique_tokens,
    }


def _measured(facts: Facts, history: History, store: ArtifactStore) -> dict[str, Any]:
    """Compute what needs single items: seed noise, biases, and the gain over the untouched pool."""
    items = read_items(store.load("items", facts.items).file("items.jsonl"))
    suites = list(facts.primary)

    def table(receipts: Any) -> ScoreTable:
        return load_table(store, receipts, items, suites)

    measured = [r for r in history.rounds if r.measured]
    if not measured:
        return {}
    tables = {r.round: table(r.seeds) for r in measured}
    fresh = {r.round: table(r.fresh) for r in measured if r.fresh}
    noise = seed_noise_floor([*tables.values(), *fresh.values()])
    n_seeds = max(len(t.seeds) for t in tables.values())
    first = first_seed_bias(list(tables.values()))
    again = remeasure_bias([(tables[r], fresh[r]) for r in fresh])
    return {
        "noise": {
            "sd": _finite(noise.sd),
            "df": noise.df,
            "n_seeds": n_seeds,
            "half_width": _half_width(noise.sd, noise.df, n_seeds),
        },
        "bias": {"first_seed": _plain(asdict(first)), "remeasured": _plain(asdict(again))},
        "gain": _gain(history, tables, fresh, noise),
    }


def _half_width(sd: float, df: int, n_seeds: int) -> float | None:
    """Half width of the interval in which 95 % of a recipe's means fall, by training seed alone."""
    if df < 1 or not math.isfinite(sd):
        return None
    from scipy.stats import t

    return float(t.ppf(0.975, df)) * sd / math.sqrt(n_seeds)


def _gain(
    history: History, tables: Mapping[int, ScoreTable], fresh: Mapping[int, ScoreTable], noise: Any
) -> dict[str, Any] | None:
    claimed, best = history.claimed_best, history.incumbent
    if 0 not in tables or best is None:
        return None
    granted = claimed is not None and claimed > 0
    number = claimed if granted and claimed is not None else best.round
    if number == 0:
        return None
    # Seeds that a round was chosen by flatter it; where fresh ones exist they alone are compared.
    after = fresh.get(number, tables[number])
    found = compare(tables[0], after, noise)
    return {
        "round": number,
        "claimed": granted,
        "fresh_seeds": number in fresh,
        **_plain(asdict(found)),
    }


def _leaves(history: History) -> list[dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for r in history.rounds:
        for leaf, values in r.data["leaves"].items():
            row = rows.setdefault(leaf, {"leaf": leaf, "path": values["path"], "rounds": {}})
            row["rounds"][str(r.round)] = {
                "score": values["score"],
                "ci_low": values["ci_low"],
                "ci_high": values["ci_high"],
                "n": values["n"],
                "supply_rows": values["supply_rows"],
                "verdict": r.data.get("leaf_verdicts", {}).get(leaf),
            }
    targeted = views.targeted_rounds(history)
    return [{**row, "targeted_rounds": targeted.get(leaf, [])} for leaf, row in rows.items()]


def _composition(facts: RoundFacts, store: ArtifactStore) -> dict[str, Any]:
    data = facts.data
    try:
        warnings = list(store.load("build", facts.build).data["warnings"])
    except ArtifactError:
        warnings = []
    return {
        "round": facts.round,
        "rows": data.get("rows"),
        "unique_tokens": data.get("unique_tokens"),
        "passes": data["passes"],
        "token_share": dict(data.get("token_share", {})),
        "leaf_share": dict(data.get("leaf_share", {})),
        "contaminated": dict(data.get("contaminated", {})),
        "warnings": warnings,
    }


def _claim(facts: RoundFacts) -> dict[str, Any]:
    claim = facts.claim or {}
    compared = claim.get("comparison") or {}
    return {
        "round": facts.round,
        "granted": claim["granted"],
        "against": claim.get("against"),
        "alpha": claim.get("alpha"),
        "first_seeds_score": claim.get("first_seeds_score"),
        "fresh_score": claim.get("fresh_score"),
        "n_first": len(facts.seeds),
        "n_fresh": len(facts.fresh),
        "diff": compared.get("diff"),
        "ci_low": compared.get("ci_low"),
        "ci_high": compared.get("ci_high"),
        "mde": _finite(compared.get("mde")),
        "verdict": claim["verdict"],
    }


def _spend(out: Path) -> dict[str, Any]:
    """Return what was spent by kind and, where a reservation names its round, by round."""
    total: dict[str, float] = {}
    rounds: dict[str, float] = {}
    amounts: dict[str, tuple[str, float]] = {}
    for line in read_ledger(out):
        amounts[line["key"]] = (line["kind"], float(line["amount"]))  # a settlement replaces its reservation
    for key, (kind, amount) in amounts.items():
        total[kind] = total.get(kind, 0.0) + amount
        name = key.split("@")[0]
        if kind == "device_s" and name.startswith("round"):
            number = name.removeprefix("round")
            rounds[number] = rounds.get(number, 0.0) + amount
    return {"total": total, "device_s_by_round": rounds}


def _provenance(facts: Facts, history: History, entries: list[Entry]) -> dict[str, Any]:
    records = {int(e.key): e.data["record"] for e in entries if e.kind == "round.recorded"}
    return {
        "journal_head": entries[-1].sha if entries else "",
        "journal_entries": len(entries),
        "item_set": f"items/{facts.items}",
        "pool": f"pool/{facts.pool}",
        "rounds": [
            {
                "round": r.round,
                "record": f"round/{records[r.round]}",
                "build": f"build/{r.build}" if r.build else None,
                "train": [f"train/{s.train}" for s in r.receipts if s.train],
                "scores": [f"score/{s.scores}" for s in r.receipts if s.scores],
            }
            for r in history.rounds
        ],
    }


def _finite(value: Any) -> Any:
    return value if isinstance(value, (int, float)) and math.isfinite(value) else None


def _plain(data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        k: (_finite(v) if isinstance(v, float) else list(v) if isinstance(v, tuple) else v)
        for k, v in data.items()
    }
