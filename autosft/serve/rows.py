"""Rows of a build or of the pool: filtered, searched and paged without reading what is not shown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import orjson

from autosft.artifacts import ArtifactStore
from autosft.errors import CampaignError
from autosft.meta.campaign import read_facts
from autosft.meta.views_memory import open_history

PAGE = 25
_TEXT = 4_000
_ORIGINS = {"as given": None, "edit": "edit", "replace": "replace", "new": "new"}


def rows_page(
    out: Path,
    *,
    number: int | None = None,
    source: str = "",
    leaf: str = "",
    origin: str = "",
    search: str = "",
    page: int = 1,
) -> dict[str, Any]:
    """Return one page of rows.

    Args:
        out: Campaign folder.
        number: Round whose build is shown; the pool as it was given if None.
        source: Only rows of this source.
        leaf: Only rows of this leaf; `-` for rows without one.
        origin: `as given`, `edit`, `replace` or `new`; '' for all.
        search: Only rows whose turns hold this text, in any case.
        page: From 1.

    Raises:
        CampaignError: There is no such round or build.
    """
    import polars as pl

    frame = pl.scan_parquet(_file(out, number))
    if source:
        frame = frame.filter(pl.col("source") == source)
    if leaf:
        frame = frame.filter(pl.col("leaf").is_null() if leaf == "-" else pl.col("leaf") == leaf)
    if origin in _ORIGINS:
        method = _ORIGINS[origin]
        frame = frame.filter(pl.col("method").is_null() if method is None else pl.col("method") == method)
    if search:
        pattern = f"(?i){re.escape(search)}"
        found = pl.element().struct.field("content").str.contains(pattern)
        frame = frame.filter(pl.col("messages").list.eval(found).list.any())
    page = max(1, page)
    total = int(frame.select(pl.len()).collect().item())
    shown = frame.slice((page - 1) * PAGE, PAGE).collect().to_dicts()
    labels = pl.scan_parquet(_file(out, number)).select("source", "leaf").unique().collect()
    return {
        "rows": [_shown(row) for row in shown],
        "total": total,
        "page": page,
        "pages": max(1, -(-total // PAGE)),
        "sources": sorted(set(labels["source"].to_list())),
        "leaves": sorted({name for name in labels["leaf"].to_list() if name}),
        "origins": list(_ORIGINS),
        "rounds": [r.round for r in open_history(out)[1].rounds if r.build],
        "asked": {
            "round": number, "source": source, "leaf": leaf, "origin": origin, "search": search, "page": page,
        },
    }  # fmt: skip


def row_page(out: Path, row_id: str, number: int | None = None) -> dict[str, Any]:
    """Return a row and the rows it was made from, youngest first.

    Raises:
        CampaignError: There is no such row.
    """
    import polars as pl

    chain: list[dict[str, Any]] = []
    wanted: str | None = row_id
    places = [_file(out, number), *_all_files(out)]
    while wanted is not None and len(chain) < 10:
        row = None
        for place in places:
            match = pl.scan_parquet(place).filter(pl.col("id") == wanted).head(1).collect()
            if match.height:
                row = match.to_dicts()[0]
                break
        if row is None:
            break
        chain.append(_shown(row))
        wanted = row["parent"]
    if not chain:
        raise CampaignError(f"there is no row {row_id[:40]}", where=str(out))
    return {"chain": chain, "round": number}


def _file(out: Path, number: int | None) -> Path:
    store = ArtifactStore(out / "artifacts")
    if number is None:
        return store.load("pool", read_facts(out).pool).file("pool.parquet")
    for facts in open_history(out)[1].rounds:
        if facts.round == number and facts.build:
            return store.load("build", facts.build).file("rows.parquet")
    raise CampaignError(f"round {number} has no build", where=str(out))


def _all_files(out: Path) -> list[Path]:
    """Files a parent may lie in: the pool, then builds from the newest on."""
    store = ArtifactStore(out / "artifacts")
    rounds = [r for r in reversed(open_history(out)[1].rounds) if r.build]
    return [_file(out, None), *(store.load("build", r.build).file("rows.parquet") for r in rounds)]


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    messages = [
        {"role": m["role"], "content": m["content"][:_TEXT], "cut": max(0, len(m["content"]) - _TEXT)}
        for m in row["messages"]
    ]
    return {
        **{key: row[key] for key in ("id", "source", "leaf", "parent", "made_by", "method", "weight")},
        "messages": messages,
        "requirements": [r["id"] for r in orjson.loads(row["requirements"])],
        "verdicts": orjson.loads(row["verdicts"]),
    }
