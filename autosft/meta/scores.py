"""Per-item results of a round's seeds as score tables: what all statistics are computed from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from autosft.artifacts import ArtifactStore
from autosft.evals import ScoreTable
from autosft.types import EvalItem, SeedReceipt


def load_table(
    store: ArtifactStore,
    receipts: Sequence[SeedReceipt],
    items: Sequence[EvalItem],
    suites: Sequence[str],
    *,
    metric: str = "strict",
) -> ScoreTable:
    """Read the verdicts of a round's seeds on some suites; several samples of an item are averaged.

    Args:
        store: The campaign's artifacts.
        receipts: One a seed, each with scores.
        items: All dev items.
        suites: Suites to keep.
        metric: Which verdict: strict, loose, form or content.
    """
    import pyarrow.parquet as pq

    wanted = {item.id for item in items if item.suite in suites}
    columns: dict[int, dict[str, list[Any]]] = {}
    for receipt in receipts:
        path = store.load("score", receipt.scores).file("items.parquet")
        table = pq.read_table(path, columns=["item", "leaf", metric])
        names = table.column("item").to_pylist()
        keep = [i for i, name in enumerate(names) if name in wanted]
        columns[receipt.seed] = {
            name: table.column(name).take(keep).to_pylist() for name in ("item", "leaf", metric)
        }
    return ScoreTable.from_columns(columns, metric)


def leaf_means(table: ScoreTable) -> dict[str, float]:
    """Return leaf -> mean over its items and the seeds, in leaf order."""
    return {
        name: float(mean)
        for name, mean in zip(table.leaf_names, table.leaf_scores_SL.mean(axis=0), strict=True)
    }
