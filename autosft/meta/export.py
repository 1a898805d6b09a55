"""Take a campaign's best checkpoint out of it: the model's folder, and what its cards must say."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import orjson

from autosft.artifacts import ArtifactStore
from autosft.errors import CampaignError
from autosft.meta.history import RoundFacts
from autosft.meta.views_memory import open_history
from autosft.meta.views_report import campaign_report

NOT_THE_MODEL = {"record.json"}


def export_checkpoint(
    out: Path, to: Path, number: int | None = None, seed: int | None = None
) -> dict[str, Any]:
    """Copy a checkpoint as a folder that transformers and vLLM load, with the recipe and receipt of its data.

    Args:
        out: Campaign folder.
        to: New or empty folder.
        number: Round; the claimed best, or else the incumbent, if None.
        seed: Training seed; the round's first if None, since choosing by score would favour a lucky one.

    Returns:
        What the cards show: `report` (see `campaign_report`), `round`, `seed`, `claimed`, `recipe`,
        `receipt`, `sources`, `summary`, `files`.

    Raises:
        CampaignError: There is no such checkpoint, or `to` holds files.
        ArtifactError: The checkpoint or its build is damaged.
    """
    _, history = open_history(out)
    chosen = _choose(out, history.rounds, history.claimed_best, history.incumbent, number)
    receipts = {r.seed: r for r in chosen.receipts if r.checkpoint}
    if not receipts or (seed is not None and seed not in receipts):
        known = ", ".join(map(str, receipts)) or "none"
        raise CampaignError(
            f"round {chosen.round} has no checkpoint{'' if seed is None else f' of seed {seed}'}",
            where=str(out),
            hint=f"it has checkpoints of the seeds: {known}",
        )
    seed = next(iter(receipts)) if seed is None else seed
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise CampaignError(
            "is not an empty folder", where=str(to), hint="name a new folder; nothing is overwritten"
        )
    store = ArtifactStore(out / "artifacts")
    checkpoint = store.load("checkpoint", Path(str(receipts[seed].checkpoint)).name, check_files=True)
    build = store.load("build", chosen.build, check_files=True)
    to.mkdir(parents=True, exist_ok=True)
    for file in sorted(checkpoint.path.iterdir()):
        if file.is_file() and file.name not in NOT_THE_MODEL:
            shutil.copyfile(file, to / file.name)
    receipt = orjson.loads(build.file("receipt.json").read_bytes())
    _write(to / "recipe.json", chosen.recipe.to_json())
    _write(to / "receipt.json", receipt)
    return {
        "report": campaign_report(out),
        "round": chosen.round,
        "seed": seed,
        "claimed": history.claimed_best == chosen.round and chosen.round > 0,
        "checkpoint": {**dict(checkpoint.data), "fingerprint": checkpoint.fingerprint},
        "build": {**dict(build.data), "fingerprint": build.fingerprint},
        "recipe": chosen.recipe.to_json(),
        "receipt": receipt,
        "sources": _sources(build.file("rows.parquet")),
        "summary": dict(receipts[seed].summary or {}),
        "files": sorted(f.name for f in to.iterdir()),
    }


def _choose(
    out: Path,
    rounds: tuple[RoundFacts, ...],
    claimed: int | None,
    incumbent: RoundFacts | None,
    number: int | None,
) -> RoundFacts:
    if number is None:
        number = claimed or (incumbent.round if incumbent else None)
    found = next((r for r in rounds if r.round == number), None)
    if found is None:
        raise CampaignError(
            "no round was measured yet" if number is None else f"there is no round {number}",
            where=str(out),
            hint="see `autosft rounds DIR`",
        )
    return found


def _sources(rows: Path) -> list[dict[str, Any]]:
    """Return source -> rows, and how the rows came to be."""
    import pyarrow.parquet as pq

    table = pq.read_table(rows, columns=["source", "method", "made_by"])
    counts: dict[str, Counter[str]] = {}
    for source, method in zip(*(table.column(n).to_pylist() for n in ("source", "method")), strict=True):
        counts.setdefault(source, Counter())[method or "as given"] += 1
    return [{"source": s, "rows": sum(n.values()), "methods": dict(n)} for s, n in sorted(counts.items())]


def _write(path: Path, data: Any) -> None:
    path.write_bytes(orjson.dumps(data, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n")
