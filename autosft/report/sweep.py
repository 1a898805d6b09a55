"""A sweep's result as Markdown, CSV, JSON and one self-contained HTML page."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from autosft.errors import CampaignError
from autosft.report.charts import both, intervals, legend
from autosft.report.page import render_template
from autosft.report.text import clean, count, score

View = Mapping[str, Any]
SOURCES = "sources"
COLUMNS = ("variant", "n", "pool_rows", "passes", "round0_score", "best_score", "best_ci_low",
           "best_ci_high", "final_score", "final_ci_low", "final_ci_high", "rounds_to_best", "claims",
           "device_hours", "usd", "llm_tokens")  # fmt: skip


def write_sweep(view: View, folder: Path) -> list[Path]:
    """Write `sweep-report.md`, `.csv`, `.json` and `.html` into a folder; return their paths.

    Args:
        view: What `autosft.meta.views_sweep.sweep_report` returns.
        folder: An existing folder.

    Raises:
        CampaignError: A file cannot be written.
    """
    texts = {
        "md": sweep_markdown(view) + "\n",
        "csv": sweep_csv(view),
        "json": json.dumps(view, indent=2, allow_nan=False) + "\n",
        "html": sweep_page(view),
    }
    paths = []
    for ending, text in texts.items():
        path = folder / f"sweep-report.{ending}"
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            temporary.write_text(text, encoding="utf-8")
            os.replace(temporary, path)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            what = f"the report cannot be written ({error.strerror})"
            raise CampaignError(what, where=str(path), hint="make room or permit writing there") from None
        paths.append(path)
    return paths


def sweep_markdown(view: View) -> str:
    """Return the table of variants and the comparisons as Markdown."""
    lines = [f"# {clean(view['sweep'])}: {view['kind']}, campaign seeds {_list(view['seeds'])}", ""]
    if view["kind"] == SOURCES:
        lines += _sources_table(view)
    else:
        lines += _variants_table(view)
    if view["pairs"]:
        lines += ["", "Differences of the best scores; p is Holm's.", ""]
        head = ["variant", "against", "difference", "95 % interval", "p", "smallest detectable", "verdict"]
        lines += _table(head, [_pair(row) for row in view["pairs"]])
    kinds = [(row["variant"], k, n) for row in view["variants"] for k, n in row["new_best"].items()]
    if kinds:
        lines += ["", "Rounds that set a new best, by action (co-occurrence, not attribution).", ""]
        lines += _table(
            ["variant", "action", "rounds", "new best", "share"],
            [[v, k, n["rounds"], n["new_best"], f"{n['share']:.0%}"] for v, k, n in kinds],
        )
    if view["residual"] is not None:
        residual = score(view["residual"], signed=True)
        lines += [
            "",
            f"Interaction: the full gain minus the sum of the single families' gains is {residual}.",
        ]
    if view["missing"]:
        lines += ["", f"Not finished: {_list(view['missing'])}."]
    return "\n".join(lines)


def _variants_table(view: View) -> list[str]:
    head = ["variant", "campaigns", "round 0", "best", "interval", "final", "interval", "rounds to best",
            "claims", "families", "device-hours"]  # fmt: skip
    body = [
        [
            row["variant"], row["n"], score(row["round0_score"]), score(row["best_score"]),
            _span(row, "best"), score(row["final_score"]), _span(row, "final"),
            _decimal(row["rounds_to_best"]),
            row["claims"],
            ", ".join(f"{f} {s:.0%}" for f, s in row["family_share"].items()) or "-",
            f"{row['device_hours']:.3f}",
        ]
        for row in view["variants"]
    ]  # fmt: skip
    return _table(head, body)


def _sources_table(view: View) -> list[str]:
    """Return what sources are compared by: no round follows round 0, so there is one score."""
    head = ["variant", "campaigns", "rows", "passes", "score", "95 % interval", "device-hours"]
    body = [
        [
            row["variant"],
            row["n"],
            "-" if row["pool_rows"] is None else count(round(row["pool_rows"])),
            "-" if row["passes"] is None else f"{row['passes']:.2f}",
            score(row["best_score"]),
            _span(row, "best"),
            f"{row['device_hours']:.3f}",
        ]
        for row in view["variants"]
    ]
    return _table(head, body)


def sweep_csv(view: View) -> str:
    """Return one line a variant; a figure that is not known is empty."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(view["variants"])
    return stream.getvalue()


def sweep_page(view: View) -> str:
    """Return the result as HTML."""
    scored = [row for row in view["variants"] if row["best_score"] is not None]
    figure = None
    if scored:
        rows = [
            (
                clean(row["variant"]),
                row["best_score"] if view["kind"] == SOURCES else row["round0_score"],
                row["best_score"],
                row["best_ci_low"],
                row["best_ci_high"],
            )
            for row in scored
        ]
        what = "Scores" if view["kind"] == SOURCES else "Untouched pool and best scores"
        title = f"{what} of {len(rows)} variants with 95 % intervals; the table has every figure."
        entries = [("dot fresh", "score, 95 % interval")]
        if view["kind"] != SOURCES:
            entries = [("dot valid", "untouched pool"), ("dot fresh", "best score, 95 % interval")]
        figure = {"svg": both(partial(intervals, rows, title=title)), "legend": legend(entries)}
    return render_template("sweep.html.j2", v=view, figure=figure)


def _table(head: Sequence[str], body: Sequence[Sequence[Any]]) -> list[str]:
    rows = [head, ["---"] * len(head), *body]
    return ["| " + " | ".join(clean(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]


def _pair(row: View) -> list[Any]:
    known = row["ci_low"] is not None
    span = f"{score(row['ci_low'], signed=True)} to {score(row['ci_high'], signed=True)}" if known else "-"
    difference = score(row["diff"], signed=True)
    p = "< .001" if row["p_holm"] < 0.001 else f"{row['p_holm']:.3f}"
    return [row["variant"], row["against"], difference, span, p, score(row["mde"]), row["verdict"]]


def _span(row: View, name: str) -> str:
    low, high = row[f"{name}_ci_low"], row[f"{name}_ci_high"]
    return "-" if low is None else f"{score(low)} to {score(high)}"


def _decimal(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _list(values: Sequence[Any]) -> str:
    return ", ".join(count(v) if isinstance(v, int) else str(v) for v in values) or "none"
