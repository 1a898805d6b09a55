"""A report's figures: from the view's plain data to drawings, each with the words that say what it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from autosft.report.charts import (
    Point,
    Stack,
    both,
    dumbbells,
    legend,
    predicted_actual,
    score_curve,
    stacked_bars,
)
from autosft.report.text import clean, count, score
from autosft.report.tree import branches
from autosft.types import FAMILIES

View = Mapping[str, Any]
FAMILY_WORDS = {
    "mix": "shares of sources and leaves",
    "prune": "rows removed",
    "repair": "rows corrected",
    "resupervise": "answers replaced",
    "synthesize": "rows written",
    "order": "order of the rows",
}
# Sources beyond these share one colour and one name.
SOURCE_LIMIT = 6
OTHER = "other sources"


def draw(view: View) -> dict[str, Any]:
    """Return name -> figure for every chart that has something to show; the others are None."""
    void = {r["round"] for r in view["lineage"] if r["invalidated"]}
    return {
        "scores": _scores(view, void),
        "claims": _claims(view),
        "actions": _actions(view),
        "predictions": _predictions(view, void),
        "tokens": _tokens(view),
        "sources": _sources(view),
        "branches": _branches(view),
    }


def _scores(view: View, void: set[int]) -> dict[str, Any] | None:
    measured = [r for r in view["rounds"] if r["score"] is not None]
    if not measured:
        return None
    points = [_score_point(r, void) for r in measured]
    points += [
        Point(
            r["round"],
            r["fresh_seeds_score"],
            style="fresh",
            label=f"round {r['round']}: {score(r['fresh_seeds_score'])} with fresh seeds",
        )
        for r in measured
        if r["fresh_seeds_score"] is not None
    ]
    noise, first = view["noise"], measured[0]
    band = None
    if noise and noise["half_width"] is not None and first["round"] == 0:
        band = first["score"] - noise["half_width"], first["score"] + noise["half_width"]
    best: list[tuple[int, float]] = []
    for r in measured:
        if r["round"] not in void and (not best or r["score"] > best[-1][1]):
            best.append((r["round"], r["score"]))
    best += [(measured[-1]["round"], best[-1][1])] if best else []
    lost = [r["round"] for r in view["rounds"] if r["score"] is None]
    top = max(measured, key=lambda r: r["score"])
    title = (
        f"Scores of {len(measured)} rounds with 95 % intervals; round 0 scores {score(first['score'])}, "
        f"the highest is round {top['round']} with {score(top['score'])}. The table below has every figure."
    )
    entries = [
        ("dot valid", "mean over seeds, 95 % interval over seeds and items"),
        ("line best", "highest so far"),
    ]
    entries += [("box band", "what training seeds alone explain, around round 0")] if band else []
    entries += [("dot fresh", "fresh seeds alone")] if any(p.style == "fresh" for p in points) else []
    entries += [("dot void", "does not count")] if any(p.style == "void" for p in points) else []
    draw_curve = partial(score_curve, points, band=band, best=best, lost=lost, title=title)
    return {"svg": both(draw_curve), "legend": legend(entries)}


def _score_point(r: View, void: set[int]) -> Point:
    style = "void" if r["round"] in void else "valid"
    label = f"round {r['round']}: {score(r['score'])} [{score(r['ci_low'])}, {score(r['ci_high'])}]"
    return Point(r["round"], r["score"], r["ci_low"], r["ci_high"], style, label)


def _claims(view: View) -> dict[str, Any] | None:
    claims = [c for c in view["claims"] if c["fresh_score"] is not None]
    if not claims:
        return None
    rows = [(f"round {c['round']}", c["first_seeds_score"], c["fresh_score"]) for c in claims]
    title = (
        f"First-seed against fresh-seed scores of {len(claims)} candidates; the table below has every figure."
    )
    entries = [("dot valid", "seeds it was chosen by"), ("dot fresh", "fresh seeds")]
    return {
        "svg": both(partial(dumbbells, rows, title=title)),
        "legend": legend(entries),
    }


def _actions(view: View) -> dict[str, Any] | None:
    rounds = [r for r in view["rounds"] if r["round"] > 0]
    if not any(r["families"] for r in rounds):
        return None
    stacks = [
        Stack(
            r["round"],
            tuple((FAMILIES.index(f), float(n)) for f, n in _in_order(r["families"])),
            f"round {r['round']}: "
            + (", ".join(f"{f} {n}" for f, n in _in_order(r["families"])) or "no effect"),
        )
        for r in rounds
    ]
    used = [f for f in FAMILIES if any(f in r["families"] for r in rounds)]
    title = f"Actions of each round by family ({', '.join(used)}), counted from what they did to the rows."
    return {
        "svg": both(partial(stacked_bars, stacks, form="{:.0f}", title=title, whole=True)),
        "legend": legend([(f"box s{FAMILIES.index(f)}", f"{f}: {FAMILY_WORDS[f]}") for f in used]),
    }


def _in_order(families: Mapping[str, int]) -> list[tuple[Any, int]]:
    return [(f, families[f]) for f in FAMILIES if f in families]


def _predictions(view: View, void: set[int]) -> dict[str, Any] | None:
    points = [
        (
            h["predicted_score"],
            h["actual_score"],
            h["ci_low"],
            h["ci_high"],
            "void" if h["round"] in void else "valid",
            str(h["round"]),
        )
        for h in view["hypotheses"]
        if h["predicted_score"] is not None and h["actual_score"] is not None
    ]
    if not points:
        return None
    title = (
        f"Predicted against measured change of the score for {len(points)} hypotheses; the list below has "
        "every figure."
    )
    entries = [
        ("dot valid", "a round, numbered, with its 95 % interval"),
        ("line diagonal", "prediction = measurement"),
    ]
    return {"svg": both(partial(predicted_actual, points, title=title)), "legend": legend(entries)}


def _tokens(view: View) -> dict[str, Any] | None:
    pools = [p for p in view["pool"] if p["unique_tokens"]]
    if not pools:
        return None
    stacks = [
        Stack(
            p["round"],
            ((0, float(p["unique_tokens"])),),
            f"round {p['round']}: {count(p['unique_tokens'])} tokens, {count(p['rows'])} rows",
        )
        for p in pools
    ]
    first = pools[0]
    title = (
        f"Unique tokens of each round's pool, from {count(first['unique_tokens'])} in round {first['round']}."
    )
    thousands = max(s.parts[0][1] for s in stacks) >= 5000
    scale = 1000.0 if thousands else 1.0
    scaled = [Stack(s.x, ((0, s.parts[0][1] / scale),), s.label) for s in stacks]
    form = "{:,.0f}k" if thousands else "{:,.0f}"
    return {"svg": both(partial(stacked_bars, scaled, form=form, title=title)), "legend": ""}


def _sources(view: View) -> dict[str, Any] | None:
    pools = [p for p in view["pool"] if p["token_share"]]
    if not pools:
        return None
    names = _main_sources(pools)
    stacks = []
    for p in pools:
        parts = [(i, p["token_share"].get(name, 0.0)) for i, name in enumerate(names)]
        rest = sum(share for name, share in p["token_share"].items() if name not in names)
        parts += [(SOURCE_LIMIT, rest)] if rest > 0 else []
        words = ", ".join(
            f"{name} {p['token_share'][name]:.0%}" for name in names if name in p["token_share"]
        )
        stacks.append(Stack(p["round"], tuple(parts), clean(f"round {p['round']}: {words}")))
    more = any(set(p["token_share"]) - set(names) for p in pools)
    entries = [(f"box s{i}", clean(name) or "(no name)") for i, name in enumerate(names)]
    entries += [(f"box s{SOURCE_LIMIT}", OTHER)] if more else []
    title = f"Shares of the training tokens by source over {len(pools)} rounds."
    return {
        "svg": both(partial(stacked_bars, stacks, form="{:.0%}", title=title, top=1.0)),
        "legend": legend(entries),
    }


def _main_sources(pools: Sequence[View]) -> list[str]:
    total: dict[str, float] = {}
    for p in pools:
        for name, share in p["token_share"].items():
            total[name] = total.get(name, 0.0) + share
    return sorted(total, key=lambda name: (-total[name], name))[:SOURCE_LIMIT]


def _branches(view: View) -> Any:
    if not view["lineage"]:
        return None
    return branches([(r["round"], r["parent"], _style(r)) for r in view["lineage"]])


def _style(r: View) -> str:
    if r["invalidated"] or r["score"] is None:
        return "void"
    return "claimed" if r["claimed_best"] else "top" if r["incumbent"] else "valid"
