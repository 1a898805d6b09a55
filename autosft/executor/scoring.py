"""Outputs to per-item verdicts on disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from autosft.errors import ArtifactError

if TYPE_CHECKING:
    from autosft.evals.score import ItemScore


def score(items_path: Path, items_hash: str, outputs_path: Path, folder: Path) -> dict[str, Any]:
    """Judge a file of outputs and write `items.parquet`, one line an output, in item order.

    Args:
        items_path: The evaluation items.
        items_hash: What the file must hash to: the run was generated from it.
        outputs_path: `outputs.jsonl` of the generate stage.
        folder: Where to write.

    Returns:
        What `evals.summarise` returns: counts and mean verdicts, as fractions of the outputs.

    Raises:
        ArtifactError: The items changed since the run was started.
        SuiteError: Items and outputs do not belong together.
    """
    from autosft.evals import read_items, read_outputs, score_outputs, summarise
    from autosft.executor.prompts import items_sha

    if items_sha(items_path) != items_hash:
        raise ArtifactError(
            "the evaluation items changed since the run was started",
            where=str(items_path),
            hint="restore the file",
        )
    scores = score_outputs(read_items(items_path), read_outputs(outputs_path))
    score_table(scores, folder)
    return summarise(scores)


def score_table(scores: Sequence[ItemScore], folder: Path) -> None:
    """Write scores as `items.parquet` into a folder, one line an output, tags as JSON."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    lines = [
        {**asdict(s), "tags": orjson.dumps(dict(s.tags), option=orjson.OPT_SORT_KEYS).decode()}
        for s in scores
    ]
    table = pa.Table.from_pylist(lines)
    # Where no answer is flagged, Arrow cannot see what the empty lists are lists of.
    at = table.schema.get_field_index("flags")
    flags = table.column(at).cast(pa.list_(pa.string()))
    pq.write_table(table.set_column(at, "flags", flags), folder / "items.parquet")
