"""What agents must not see, kept outside the campaign folder: the held-out twin and the lab's manifest
(I6)."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from autosft.actions import BenchmarkIndex
from autosft.actions.decontaminate import HELD_OUT
from autosft.artifacts import write_atomic
from autosft.config import Config
from autosft.errors import HoldoutError, SuiteError
from autosft.evals import Suite, load_suite
from autosft.evals.holdout import OPENED, Seal, check_disjoint, read_seal, seal
from autosft.evals.suites.sealed import SEAL

HOLDOUT = "holdout.json"


def sealed_folder(campaign_folder: Path) -> Path:
    """Return where a campaign's sealed things lie: beside the campaign, readable by the operator only."""
    return campaign_folder.parent / ".sealed" / campaign_folder.name


def is_sealed(path: Path) -> bool:
    """Whether a path, links followed, lies among sealed things."""
    real = path.resolve()
    folders = (real, *real.parents)
    return ".sealed" in real.parts or any((folder / SEAL).exists() for folder in folders)


def refuse_held_out(campaign_folder: Path, names: Sequence[str]) -> None:
    """Refuse suites that share prompts with what is sealed for a campaign, whatever they are called.

    Args:
        campaign_folder: Its folder; where nothing is sealed, nothing is refused.
        names: Suites, or JSONL files of items.

    Raises:
        HoldoutError: One shares prompts with the sealed suite, or the seal cannot be read.
        SuiteError: One cannot be loaded.
    """
    path = campaign_folder / HOLDOUT
    if not path.exists():
        return
    try:
        prompts = orjson.loads(path.read_bytes())["prompts"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HoldoutError(
            f"the held-out digests cannot be read ({error})", where=str(path), hint="restore the file"
        ) from None
    suites = [
        load_suite("jsonl", path=name) if name.endswith(".jsonl") else load_suite(name) for name in names
    ]
    check_disjoint(prompts, suites)


def _private(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    os.chmod(folder, 0o700)
    return folder


def seal_manifest(campaign_folder: Path, manifest: Any) -> None:
    """Write the lab's manifest (what was planted, for the examiner) outside the campaign folder."""
    path = _private(sealed_folder(campaign_folder)) / "manifest.json"
    rows = {key: None if row is None else asdict(row) for key, row in manifest.mended.items()}
    data = {
        "seed": manifest.seed,
        "plan": asdict(manifest.plan),
        "defects": dict(manifest.defects),
        "mended": rows,
    }
    write_atomic(path, orjson.dumps(data, option=orjson.OPT_NON_STR_KEYS))
    os.chmod(path, 0o600)


def sealed_benchmarks(
    config: Config, campaign_folder: Path, suites: Sequence[Suite]
) -> tuple[BenchmarkIndex, ...]:
    """Return the held-out digests that builds are decontaminated against, sealing the twin on the first call.

    The campaign folder gets digests and a fingerprint, no text and no name; the items stay with the operator.

    Args:
        config: Configuration of the campaign.
        campaign_folder: Its folder.
        suites: The dev suites; none may share a prompt with the twin.

    Raises:
        HoldoutError: The twin shares prompts with a dev suite, or its digests are damaged.
    """
    path = campaign_folder / HOLDOUT
    if not path.exists():
        if not config.holdout.enabled or "lab" not in config.suite.names:
            return ()
        write_atomic(path, orjson.dumps(asdict(_seal_twin(config, campaign_folder, suites))))
    try:
        seal_data = orjson.loads(path.read_bytes())
        check_disjoint(seal_data.get("prompts", ()), suites)
        return (BenchmarkIndex.from_json(seal_data["digests"]),)
    except (ValueError, KeyError, TypeError, AttributeError, SuiteError) as error:
        raise HoldoutError(
            f"the held-out digests cannot be read ({error})", where=str(path), hint="restore the file"
        ) from None


def _seal_twin(config: Config, campaign_folder: Path, suites: Sequence[Suite]) -> Seal:
    folder = _unused(_private(sealed_folder(campaign_folder)))
    if (folder / SEAL).exists():
        return read_seal(folder)  # sealed by a start that was killed before it could say so
    seed = config.holdout.seed if config.holdout.seed is not None else secrets.randbelow(2**31)
    twin = load_suite("lab", seed=seed, prompts_per_leaf=config.lab.prompts_per_leaf, split="held_out")
    return seal(
        twin,
        folder,
        campaign=campaign_folder,
        digest=lambda texts: BenchmarkIndex.from_items(HELD_OUT, texts).to_json(),
        dev=suites,
    )


def _unused(folder: Path) -> Path:
    """Return the first `twin-N` in a sealed folder that was never opened."""
    number = 1
    while (folder / f"twin-{number}" / OPENED).exists():
        number += 1
    return folder / f"twin-{number}"
