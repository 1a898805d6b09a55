"""The table of an evaluation: aggregates with intervals, detectable changes, what is counted apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from autosft.report.tables import make_table
from autosft.report.text import clean, count, score

if TYPE_CHECKING:
    from rich.console import Console

#: What a paired comparison needs for a power of 80 % at 5 %: the sum of two normal quantiles.
_DETECTABLE_SE = 2.8016


def show_evaluation(console: Console, result: Mapping[str, Any]) -> None:
    """Print an evaluation's results, one block a suite."""
    for name, suite in result["suites"].items():
        settings, counts = suite["settings"], suite["counts"]
        k = settings["samples_per_item"]
        decoding = "greedy" if settings["temperature"] == 0 else f"temperature {settings['temperature']:g}"
        console.print(
            f"{clean(name)}: {count(suite['n_items'])} items, avg@{k}, {decoding}, "
            f"at most {count(settings['max_new_tokens'])} tokens"
        )
        table = make_table("metric", "mean", "95 % interval", "s.e.", "of sampling", "detectable")
        for column in table.columns[1:]:
            column.justify = "right"
        for metric, value in suite["metrics"].items():
            se = value["se"]
            table.add_row(
                clean(metric),
                score(value["mean"]),
                f"{score(value['ci_low'])} - {score(value['ci_high'])}",
                score(se),
                score(value["sampling_se"]),
                # Two checkpoints that share nothing; pairing items can only help.
                score(None if se is None else _DETECTABLE_SE * se * 2**0.5),
            )
        console.print(table)
        for metric, value in (suite.get("repaired") or {}).items():
            console.print(
                f"repaired checks, {clean(metric)}: {score(value['mean'])} "
                f"[{score(value['ci_low'])}, {score(value['ci_high'])}], {count(value['n_items'])} items"
            )
        console.print(
            f"of {count(counts['answers'])} answers {count(counts['truncated'])} cut off, "
            f"{count(counts['empty'])} blank; the content guard flags {count(counts['flagged'])}, "
            f"{count(counts['flagged_passes'])} of {count(counts['passes'])} passes"
        )
        console.print()
    console.print(f"Results: {clean(result['out'])}")


def show_contamination(console: Console, report: Mapping[str, Any]) -> None:
    """Print what `decontaminate` found."""
    console.print(
        f"{count(report['contaminated'])} of {count(report['rows'])} rows share text with a suite "
        f"(rule {clean(report['rule'])})."
    )
    for name, rows in report["by_suite"].items():
        console.print(f"  {clean(name)}: {count(rows)} rows")
    if report["hits"]:
        table = make_table("file", "row", "suite", "items")
        for hit in report["hits"][:20]:
            table.add_row(
                *(clean(hit[key], limit=40) for key in ("file", "row", "suite")),
                clean(", ".join(hit["items"])),
            )
        console.print(table)
        if len(report["hits"]) > 20:
            console.print(f"... {count(len(report['hits']) - 20)} more; --json lists them")
    for path in report["written"]:
        console.print(f"Clean rows: {clean(path)}")


def show_holdout(console: Console, summary: Mapping[str, Any]) -> None:
    """Print the one scoring of a sealed suite."""
    for title, key in (("round 0", "reference"), (f"round {summary['claimed_best']}, claimed best", "score")):
        value = summary[key]
        interval = f"[{score(value['ci_low'])}, {score(value['ci_high'])}]"
        console.print(
            f"Held-out, {title}: {score(value['mean'])} {interval}, "
            f"{count(value['seeds'])} seeds, {count(summary['n_items'])} items"
        )
    console.print(f"Against round 0: {clean(summary['difference'])}")
    console.print("The campaign is closed: its sealed suite is not scored again.")
