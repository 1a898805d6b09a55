"""Writing a round down: scores with intervals, comparison with the parent, leaf scores, supply, diffs,
hypothesis."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from autosft.actions import Build, load_build
from autosft.evals import (
    Comparison,
    ScoreTable,
    SeedNoise,
    check_guard,
    compare,
    compare_leaves,
    estimate,
    estimate_leaves,
    seed_noise_floor,
)
from autosft.identity import fingerprint
from autosft.memory.hypotheses import Outcome
from autosft.meta.campaign import Campaign
from autosft.meta.history import History, RoundFacts
from autosft.meta.runs import find_receipts, stored_receipt
from autosft.meta.scores import leaf_means, load_table
from autosft.meta.state import State
from autosft.taxonomy import supply
from autosft.types import Recipe, SeedReceipt


def write_round(campaign: Campaign, state: State, recipe: Recipe, history: History) -> dict[str, Any]:
    """Write the round's record, resolve its hypothesis, journal it; return the record with a headline."""
    c, number = campaign, state["round"]
    known = c.journal.find("round.recorded", str(number))
    if known is not None:
        return dict(c.store.load("round", known.data["record"]).data)
    parent = (
        history.rounds[c.store.load("decision", state["decision"]).data["parent"]] if number > 0 else None
    )
    build = load_build(c.store.load("build", state["build"])) if state["build"] else None
    data = _identity(c, state, recipe, parent, build)
    if state["status"] == "ok":
        assert build is not None
        receipts = find_receipts(c, state["build"], c.seeds)
        assert receipts is not None, "a round is recorded only after its runs"
        data["seeds"] = [stored_receipt(r, c) for r in receipts]
        data.update(_measurements(c, receipts, build, parent, history))
    else:
        data.update(_nothing_measured(state["status"]))
    data["headline"] = _headline(data, parent)
    key = fingerprint(data)
    if c.store.find("round", key) is None:
        with c.store.create("round", key, {"round": number}) as step:
            step.data = data
    if number > 0 or state["status"] == "ok":
        outcome, facts = _resolve(data)
        c.hypotheses.submit(number, recipe.fingerprint)
        c.hypotheses.resolve(number, outcome, facts)
    c.journal.append(
        "round.recorded",
        str(number),
        {
            "record": key,
            **{k: data[k] for k in ("status", "parent", "score", "families", "build", "verdict")},
        },
    )
    return data


def _identity(
    c: Campaign, state: State, recipe: Recipe, parent: RoundFacts | None, build: Build | None
) -> dict[str, Any]:
    decision: Mapping[str, Any] = (
        c.store.load("decision", state["decision"]).data if state.get("decision") else {}
    )
    registered = c.journal.find("hypothesis.registered", str(state["round"]))
    facts: Mapping[str, Any] = build.artifact.data if build else {}
    n_new = len(decision.get("kinds", ()))
    diffs = [asdict(d) if not isinstance(d, Mapping) else dict(d) for d in facts.get("diffs", ())]
    diffs = diffs[len(diffs) - n_new :] if n_new else []
    families: dict[str, int] = {}
    for diff in diffs:
        if diff["family"]:
            families[diff["family"]] = families.get(diff["family"], 0) + 1
    return {
        "round": state["round"],
        "status": state["status"],
        "parent": parent.round if parent else None,
        "recipe": recipe.to_json(),
        "build": state["build"],
        "effect": decision.get("effect") or (build.pool.fingerprint if build else ""),
        "hypothesis_id": registered.data["id"] if registered else None,
        "predicted": dict(decision.get("predicted", {})),
        "predicted_score": decision.get("predicted_score", 0.0),
        "analysts": [p["analyst"] for p in decision.get("accepted", ())],
        "bundled": bool(decision.get("bundled", False)),
        "kinds": list(decision.get("kinds", ())),
        "diffs": diffs,
        "families": families,
        "unique_tokens": facts.get("unique_tokens"),
        "rows": facts.get("rows"),
        "token_share": facts.get("token_share", {}),
        "leaf_share": facts.get("leaf_share", {}),
        "contaminated": facts.get("contaminated", {}),
        "train_tokens": facts.get("train_tokens"),
        "loss_tokens": facts.get("loss_tokens"),
        "optimizer_steps": facts.get("optimizer_steps"),
        "passes": facts.get("passes"),
        "seeds": [],
    }


def _nothing_measured(status: str) -> dict[str, Any]:
    return {
        "score": None,
        "ci_low": None,
        "ci_high": None,
        "leaf_scores": {},
        "leaves": {},
        "leaf_deltas": {},
        "delta_parent": None,
        "comparison": None,
        "verdict": f"abandoned: {status}",
        "guards_broken": [],
        "set_new_best": False,
    }


def _measurements(
    c: Campaign, receipts: list[SeedReceipt], build: Build, parent: RoundFacts | None, history: History
) -> dict[str, Any]:
    primary = list(c.facts.primary)
    table = load_table(c.store, receipts, c.items, primary)
    earlier = {r.round: load_table(c.store, r.seeds, c.items, primary) for r in history.rounds if r.measured}
    noise = seed_noise_floor([*earlier.values(), table])
    measured = estimate(table, noise)
    means = leaf_means(table)
    data: dict[str, Any] = {
        "score": measured.score,
        "ci_low": measured.ci_low,
        "ci_high": measured.ci_high,
        "seed_scores": [float(score) for score in table.seed_scores_S],
        "seed_noise_sd": noise.sd,
        "leaf_scores": means,
        "leaves": _leaves(c, receipts, table, noise, build),
        "leaf_deltas": {},
        "leaf_verdicts": {},
        "delta_parent": None,
        "comparison": None,
        "verdict": "reference",
        "guards_broken": [],
        "set_new_best": parent is None,
    }
    if parent is None:
        return data
    before = earlier[parent.round]
    compared = compare(before, table, noise)
    old = leaf_means(before)
    data["leaf_deltas"] = {leaf: means[leaf] - old[leaf] for leaf in means}
    data["leaf_verdicts"] = {
        leaf: found.verdict for leaf, found in compare_leaves(before, table, noise).items()
    }
    data["delta_parent"] = compared.diff
    data["comparison"] = {"against": parent.round, **_plain(compared)}
    data["verdict"] = verdict_text(compared, f"round {parent.round}")
    data["guards_broken"] = _guards_broken(c, history, receipts)
    best = history.incumbent
    higher = best is None or measured.score > (best.score or 0.0)
    data["set_new_best"] = higher and not data["guards_broken"]
    return data


def verdict_text(compared: Comparison, other: str) -> str:
    """Return a comparison as one short line: no gain without its interval (`MDE`: smallest detectable)."""
    if compared.verdict == "not distinguishable":
        mde = f", MDE {compared.mde:.3f}" if math.isfinite(compared.mde) else ""
        return f"not distinguishable from {other} ({compared.diff:+.3f}{mde})"
    interval = f"{compared.diff:+.3f} [{compared.ci_low:+.3f}, {compared.ci_high:+.3f}]"
    return f"{compared.verdict} than {other}: {interval}"


def _plain(compared: Comparison) -> dict[str, Any]:
    """Return a comparison as JSON data; what is not known is None."""
    data = asdict(compared)
    return {k: (None if isinstance(v, float) and not math.isfinite(v) else v) for k, v in data.items()}


def _guards_broken(c: Campaign, history: History, receipts: list[SeedReceipt]) -> list[str]:
    """Return the guard suites whose score fell below round 0's by more than the margin (I13)."""
    first = next(r for r in history.rounds if r.measured)
    broken = []
    for suite in c.config.suite.guard:
        before, after = (load_table(c.store, r, c.items, [suite]) for r in (first.seeds, receipts))
        if check_guard(before, after, c.config.campaign.guard_margin).status == "fell":
            broken.append(suite)
    return broken


def _leaves(
    c: Campaign, receipts: list[SeedReceipt], table: ScoreTable, noise: SeedNoise, build: Build
) -> dict[str, dict[str, Any]]:
    """Return leaf -> score with interval and n, form and content shares, and supply in the round's pool."""
    other = {
        name: leaf_means(load_table(c.store, receipts, c.items, list(c.facts.primary), metric=name))
        for name in ("form", "content")
    }
    stock = supply(build.pool, c.taxonomy, c.encoder.counts(build.pool)[0].tolist(), passes=c.ctx.passes)
    leaves = {}
    for leaf, measured in estimate_leaves(table, noise).items():
        known = stock.get(leaf)
        leaves[leaf] = {
            "path": c.taxonomy.leaf(leaf).path if leaf in c.taxonomy else leaf,
            "score": measured.score,
            "ci_low": measured.ci_low,
            "ci_high": measured.ci_high,
            "n": measured.n_items,
            "n_seeds": measured.n_seeds,
            "form": other["form"][leaf],
            "content": other["content"][leaf],
            "supply_rows": known.rows if known else 0,
            "supply_tokens": known.tokens if known else 0,
            "supply_passing_frac": known.passing_frac if known else None,
        }
    return leaves


def _resolve(data: Mapping[str, Any]) -> tuple[Outcome, dict[str, Any]]:
    """Return what the measurement says about the hypothesis: its sign must be distinguishable from none."""
    facts = {
        "score": data["score"],
        "predicted_score": data["predicted_score"],
        "actual_score": data["delta_parent"],
        "predicted": data["predicted"],
        "actual": {leaf: data["leaf_deltas"].get(leaf) for leaf in data["predicted"]},
    }
    compared = data["comparison"]
    if data["status"] != "ok":
        return "abandoned", {**facts, "why": data["status"]}
    if compared is None:
        return "supported", facts
    outcomes: dict[str, Outcome] = {"better": "supported", "worse": "refuted"}
    return outcomes.get(compared["verdict"], "inconclusive"), facts


def _headline(data: Mapping[str, Any], parent: RoundFacts | None) -> str:
    if data["score"] is None:
        return str(data["verdict"])
    text = f"score {data['score']:.3f} [{data['ci_low']:.3f}, {data['ci_high']:.3f}]"
    return text if parent is None else f"{text}, {data['verdict']}"
