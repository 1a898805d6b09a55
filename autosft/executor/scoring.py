"""Outputs to per-item verdicts on disk."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from autosft.errors import ArtifactError


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
    import pyarrow as pa
    import pyarrow.parquet as pq

    from autosft.evals import read_items, read_outputs, score_outputs, summarise
    from autosft.executor.prompts import items_sha

    if items_sha(items_path) != items_hash:
        raise ArtifactError(
            "the evaluation items changed since the run was started",
            where=str(items_path),
            hint="restore the file",
        )
    scores = score_outputs(read_items(items_path), read_outputs(outputs_path))
    lines = [
        {**asdict(s), "tags": orjson.dumps(dict(s.tags), option=orjson.OPT_SORT_KEYS).decode()}
        for s in scores
    ]
    pq.write_table(pa.Table.from_pylist(lines), folder / "items.parquet")
    return summarise(scores)
