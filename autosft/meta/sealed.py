"""What agents must not see, kept outside the campaign folder: the held-out twin and the lab's manifest (I6)."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from autosft.artifacts import write_atomic


def sealed_folder(campaign_folder: Path) -> Path:
    """Return where a campaign's sealed things lie: beside the campaign, readable by the operator only."""
    return campaign_folder.parent / ".sealed" / campaign_folder.name


def _private(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    os.chmod(folder, 0o700)
    return folder


def seal_manifest(campaign_folder: Path, manifest: Any) -> None:
    """Write the lab's manifest (what was planted, for the examiner) outside the campaign folder."""
    path = _private(sealed_folder(campaign_folder)) / "manifest.json"
    rows = {key: None if row is None else asdict(row) for key, row in manifest.mended.items()}
    data = {"seed": manifest.seed, "plan": asdict(manifest.plan), "defects": dict(manifest.defects), "mended": rows}
    write_atomic(path, orjson.dumps(data, option=orjson.OPT_NON_STR_KEYS))
    os.chmod(path, 0o600)


def sealed_benchmarks(config: Any, campaign_folder: Path, *, opened: bool) -> tuple[Any, ...]:
    return ()
