"""What a sweep found: a row a variant, comparisons with Holm's correction. Read-only, works on a running
sweep."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from autosft.artifacts import ArtifactStore
from autosft.evals import ScoreTable, compare, read_items
from autosft.evals.stats import holm, minimum_detectable_effect
from autosft.meta import views
from autosft.meta.ablate import compare_facts, read_plan
from autosft.meta.campaign import CAMPAIGN, read_facts
from autosft.meta.scores import load_table
from autosft.meta.views_memory import open_history
from autosft.types import FAMILIES

ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class _Cell:
    variant: str
    seed: int
    row: dict[str, Any]
    table: ScoreTable | None


def sweep_report(folder: Path) -> dict[str, Any]:
    """Return a sweep's result.

    Returns:
        `kind`, `seeds`, `frozen` (fingerprints that all campaigns share); `missing`, campaigns that have not
            ended and count in no mean; `campaigns`, a row each: best and
        final score with intervals, rounds to best, share of action families, share of the rounds with a kind
        of action that set a new best (co-occurrence where a round holds several), cost; `variants`, the means
        over campaign seeds; `pairs`, differences of the best scores with Holm's p-values; `residual`, for
        sweeps of families, the full system's gain minus the sum of the single families' gains.

    Raises:
        CampaignError: There is no sweep in the folder.
        FrozenSettingsError: Its campaigns differ in more than what was swept.
    """
    plan = read_plan(folder)
    places = {name: (cell["variant"], int(cell["seed"])) for name, cell in plan["cells"].items()}
    opened = [
        (folder / name, seed, read_facts(folder / name))
        for name, (_, seed) in places.items()
        if (folder / name / CAMPAIGN).exists()
    ]
    compare_facts(opened, plan["kind"])
    cells = [_read_cell(place, *places[place.name]) for place, _, _ in opened]
    order = plan["variants"]
    cells.sort(key=lambda cell: (order.index(cell.variant), cell.seed))
    # A campaign that is still under way would count as one that found nothing more.
    done = [cell for cell in cells if cell.row["state"] == "stopped"]
    rows = [_variant(name, [c.row for c in done if c.variant == name]) for name in order]
    return {
        "sweep": folder.name,
        "kind": plan["kind"],
        "seeds": plan["seeds"],
        "missing": sorted(set(places) - {cell.row["campaign"] for cell in done}),
        "frozen": _frozen(opened[0][2]) if opened else {},
        "variants": rows,
        "campaigns": [cell.row for cell in cells],
        "pairs": _pairs(done, order, plan["kind"]),
        "residual": _residual(plan["kind"], rows),
    }


def _frozen(facts: Any) -> dict[str, Any]:
    keys = ("base_fingerprint", "encoder", "taxonomy", "budget_tokens", "optimizer_steps")
    return {key: getattr(facts, key) for key in keys}


def _read_cell(folder: Path, variant: str, seed: int) -> _Cell:
    facts = read_facts(folder)
    _, history = open_history(folder)
    status, rounds, actions = views.status(folder), views.rounds(folder), views.actions(folder)
    measured = [r for r in rounds if r["score"] is not None]
    best = next((r for r in measured if r["incumbent"]), None)
    last = measured[-1] if measured else None
    table = None
    if history.incumbent is not None:
        store = ArtifactStore(folder / "artifacts")
        items = read_items(store.load("items", facts.items).file("items.jsonl"))
        table = load_table(store, history.incumbent.receipts, items, facts.primary)
    row = {
        "campaign": folder.name,
        "variant": variant,
        "seed": seed,
        "state": status["state"],
        "stop_reason": status["stop_reason"],
        "rounds": status["rounds_recorded"],
        "round0_score": status["round0_score"],
        **_scored("best", best),
        **_scored("final", last),
        "rounds_to_best": None if best is None else best["round"],
        "claimed_best": status["claimed_best"],
        "family_share": _shares(actions),
        "new_best": _new_best(actions),
        "pool_rows": facts.pool_rows,
        "passes": facts.budget_tokens / facts.unique_tokens,
        "device_hours": status["device_hours"],
        "usd": status["usd"],
        "llm_tokens": status["llm_tokens"],
        "elapsed_s": status["elapsed_s"],
    }
    return _Cell(variant, seed, row, table)


def _scored(name: str, r: Mapping[str, Any] | None) -> dict[str, Any]:
    found = {"score": None, "ci_low": None, "ci_high": None} if r is None else r
    return {f"{name}_{key}": found[key] for key in ("score", "ci_low", "ci_high")}


def _shares(actions: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    used = [a["family"] for a in actions if a["family"] is not None]
    return {f: used.count(f) / len(used) for f in FAMILIES if f in used}


def _new_best(actions: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """Return kind -> rounds that held it, and how many of them set a new best."""
    rounds: dict[str, dict[int, bool]] = {}
    for a in actions:
        rounds.setdefault(a["kind"], {})[a["round"]] = bool(a["set_new_best"])
    return {k: {"rounds": len(r), "new_best": sum(r.values())} for k, r in sorted(rounds.items())}


def _variant(name: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the means of a variant's campaigns; a figure no campaign has is None."""
    kinds: dict[str, dict[str, int]] = {}
    for row in rows:
        for kind, n in row["new_best"].items():
            total = kinds.setdefault(kind, {"rounds": 0, "new_best": 0})
            total["rounds"] += n["rounds"]
            total["new_best"] += n["new_best"]
    families = [f for f in FAMILIES if any(f in row["family_share"] for row in rows)]
    return {
        "variant": name,
        "n": len(rows),
        "round0_score": _mean(rows, "round0_score"),
        **_interval("best", rows),
        **_interval("final", rows),
        "rounds_to_best": _mean(rows, "rounds_to_best"),
        "claims": sum(1 for row in rows if row["claimed_best"]),
        "family_share": {f: fmean(row["family_share"].get(f, 0.0) for row in rows) for f in families},
        "new_best": {k: {**n, "share": n["new_best"] / n["rounds"]} for k, n in sorted(kinds.items())},
        "pool_rows": _mean(rows, "pool_rows"),
        "passes": _mean(rows, "passes"),
        "device_hours": sum(row["device_hours"] for row in rows),
        "usd": sum(row["usd"] for row in rows),
        "llm_tokens": sum(row["llm_tokens"] for row in rows),
    }


def _mean(rows: Sequence[Mapping[str, Any]], key: str) -> float | None:
    values = [row[key] for row in rows if row[key] is not None]
    return fmean(values) if values else None


def _interval(name: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the mean with its 95 % interval over campaign seeds; of one campaign, its own interval."""
    scored = [row for row in rows if row[f"{name}_score"] is not None]
    if len(scored) == 1:
        return {f"{name}_{key}": scored[0][f"{name}_{key}"] for key in ("score", "ci_low", "ci_high")}
    if not scored:
        return _scored(name, None)
    from scipy.stats import t

    values = np.array([row[f"{name}_score"] for row in scored])
    half = float(t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values)))
    # Seeds that happen to agree are no surer than their items and training seeds allow.
    own = [(row[f"{name}_ci_high"] - row[f"{name}_ci_low"]) / 2 for row in scored]
    half = max(half, fmean(own) / math.sqrt(len(own)))
    mean = float(values.mean())
    return {
        f"{name}_score": mean,
        f"{name}_ci_low": max(0.0, mean - half),
        f"{name}_ci_high": min(1.0, mean + half),
    }


def _pairs(cells: Sequence[_Cell], order: Sequence[str], kind: str) -> list[dict[str, Any]]:
    """Compare variants' best scores over the campaign seeds that all of them finished.

    Sources are compared with `all` only.

    Each seed is a block: the residual of a randomised block design, pooled over all variants, is the noise of
    a campaign; a difference is never taken to be surer than its items and training seeds allow.
    """
    tables = {(c.variant, c.seed): c.table for c in cells if c.table is not None}
    names = [name for name in order if any(variant == name for variant, _ in tables)]
    seeds = sorted({s for _, s in tables if all((name, s) in tables for name in names)})
    if len(names) < 2 or not seeds:
        return []
    scores = {(c.variant, c.seed): float(c.row["best_score"]) for c in cells if c.table is not None}
    grid_VS = np.array([[scores[name, seed] for seed in seeds] for name in names])
    residual_VS = grid_VS - grid_VS.mean(0) - grid_VS.mean(1, keepdims=True) + grid_VS.mean()
    df = (len(names) - 1) * (len(seeds) - 1)
    between = 2 * float((residual_VS**2).sum()) / df / len(seeds) if df else 0.0
    wanted = [(a, b) for a, b in combinations(names, 2) if kind != "sources" or a == "all"]
    rows = [_pair(a, b, seeds, tables, between, df) for a, b in wanted]
    for row, p in zip(rows, holm([row["p"] for row in rows]), strict=True):
        row["p_holm"] = p
        better = "better" if row["diff"] > 0 else "worse"
        row["verdict"] = better if p <= ALPHA else "not distinguishable"
    return rows


def _pair(
    a: str, b: str, seeds: Sequence[int], tables: Mapping[Any, ScoreTable], between: float, df: float
) -> dict[str, Any]:
    from scipy.stats import t

    single = [compare(tables[a, seed], tables[b, seed]) for seed in seeds]
    diff = fmean(c.diff for c in single)
    within = sum(c.se**2 for c in single) / len(seeds) ** 2
    # One campaign seed tells nothing about other campaigns: its interval is over items and training seeds.
    if not df or within > between:
        variance, freedom = within, sum(c.df for c in single)
    else:
        variance, freedom = between, df
    known = math.isfinite(variance) and variance > 0 and freedom > 0
    se = math.sqrt(variance) if known else math.nan
    half = float(t.ppf(0.975, freedom)) * se if known else math.inf
    return {
        "variant": b,
        "against": a,
        "diff": diff,
        "ci_low": diff - half if known else None,
        "ci_high": diff + half if known else None,
        "mde": minimum_detectable_effect(se, freedom) if known else None,
        "p": float(2 * t.sf(abs(diff) / se, freedom)) if known else 1.0,
        "campaign_seeds": len(seeds),
    }


def _residual(kind: str, rows: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the full system's gain minus the sum of the gains of its families alone, or None."""
    if kind != "families":
        return None
    gains = {
        row["variant"]: row["best_score"] - row["round0_score"]
        for row in rows
        if row["best_score"] is not None
    }
    alone = [f"only-{family}" for family in FAMILIES]
    if "all" not in gains or any(name not in gains for name in alone):
        return None
    return float(gains["all"] - sum(gains[name] for name in alone))
