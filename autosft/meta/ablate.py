"""A sweep: the same campaign with components or action families switched, several seeds, all else verified
equal.

OUT/sweep.json       the plan: kind, variants, seeds
OUT/VARIANT-sSEED/   one campaign each

The same command continues a sweep: finished campaigns are left alone, interrupted ones go on, and a plan with
more variants or seeds adds to it.
"""

from __future__ import annotations

import ctypes
import signal
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import orjson

from autosft.artifacts import write_atomic
from autosft.config import Config, campaign_settings, changed_settings
from autosft.errors import AutosftError, CampaignError, FrozenSettingsError
from autosft.memory import CampaignLock
from autosft.meta.campaign import CAMPAIGN, Facts, read_facts
from autosft.meta.designs import KINDS, Cell, variants
from autosft.types import Event

SWEEP = "sweep.json"
SCHEMA = 1
# What a sweep varies: between variants, and between campaign seeds. Everything else must be equal.
VARIANT_KEYS = ("components.", "campaign.families", "pool.sources")
SEED_KEYS = ("policy.seed", "lab.seed", "campaign.seeds")
SEED_FACTS = ("pool", "pool_rows", "items", "suites", "benchmarks", "budget_tokens", "optimizer_steps",
              "unique_tokens")  # fmt: skip
# What sources alone and left out cannot share.
POOL_FACTS = frozenset({"pool", "pool_rows", "unique_tokens"})
ALL_FACTS = ("base_fingerprint", "encoder", "taxonomy", "primary", "planned_claims")
_PR_SET_PDEATHSIG = 1


def run_sweep(
    cells: Sequence[Cell],
    kind: str,
    folder: Path,
    *,
    jobs: int | None = None,
    on_event: Callable[[Event], None] | None = None,
) -> dict[str, str]:
    """Run or continue every campaign of a sweep.

    Args:
        cells: What `plan` returned.
        kind: Its kind.
        folder: Folder of the sweep; created.
        jobs: Campaigns side by side; as many as the executor's slots allow if None.
        on_event: Receives progress for people.

    Returns:
        Campaign folder name -> '' where it ended, else why it failed.

    Raises:
        CampaignError: The folder holds something else.
        CampaignLockedError: Another process works on the sweep.
        FrozenSettingsError: Campaigns differ in more than what is swept.
    """
    emit = on_event or (lambda event: None)
    _open_folder(folder)
    with CampaignLock(folder):
        _check_plan(folder, kind)
        for cell in cells:
            _check_cell(cell)
        check_equal(cells, kind)
        _store_plan(folder, kind, cells)
        ranks = cells[0].config.trainer.ranks
        runs = cells[0].config.executor.worker_slots(10**6, ranks)
        wanted = jobs or max(1, runs // len(cells[0].config.campaign.seeds))
        wanted = min(wanted, len(cells))
        share = [replace(c, config=_with_slots(c.config, ranks * max(1, runs // wanted))) for c in cells]
        run = _run_here if wanted == 1 else _run_side_by_side
        failed = run(share, wanted, emit)
        check_equal(cells, kind)
    return failed


def _with_slots(config: Config, slots: int) -> Config:
    return replace(config, executor=replace(config.executor, slots=slots))


def _open_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CampaignError(
            f"cannot be created ({error.strerror})", where=str(folder), hint="choose another --out"
        ) from None
    if (folder / CAMPAIGN).exists() or (any(folder.iterdir()) and not (folder / SWEEP).exists()
                                        and not (folder / ".lock").exists()):  # fmt: skip
        raise CampaignError("holds other files and no sweep", where=str(folder), hint="choose a new --out")


def read_plan(folder: Path) -> dict[str, Any]:
    """Return a sweep's plan: `kind`, `variants`, `seeds`, `cells` (folder name -> variant, seed).

    Raises:
        CampaignError: There is none, or it cannot be read.
    """
    path = folder / SWEEP
    try:
        data = orjson.loads(path.read_bytes())
        if data["schema"] != SCHEMA or data["kind"] not in KINDS:
            raise ValueError(f"schema {data['schema']}, kind {data['kind']}")
        return {key: data[key] for key in ("kind", "variants", "seeds", "cells")}
    except FileNotFoundError:
        raise CampaignError(
            "no sweep here", where=str(folder), hint="start one with `autosft ablate --out DIR`"
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise CampaignError(f"unreadable ({error})", where=str(path), hint="restore the file") from None


def _check_plan(folder: Path, kind: str) -> None:
    if (folder / SWEEP).exists():
        known = read_plan(folder)["kind"]
        if known != kind:
            raise CampaignError(
                f"holds a sweep of kind {known}, not {kind}", where=str(folder), hint="choose another --out"
            )


def _store_plan(folder: Path, kind: str, cells: Sequence[Cell]) -> None:
    known = read_plan(folder) if (folder / SWEEP).exists() else {"variants": [], "seeds": [], "cells": {}}
    order = list(variants(kind, cells[0].config))
    names = {*known["variants"], *(c.variant for c in cells)}
    data = {
        "schema": SCHEMA,
        "kind": kind,
        "variants": [name for name in order if name in names],
        "seeds": sorted({*known["seeds"], *(c.seed for c in cells)}),
        "cells": {
            **known["cells"],
            **{c.folder.name: {"variant": c.variant, "seed": c.seed} for c in cells},
        },
    }
    write_atomic(folder / SWEEP, orjson.dumps(data, option=orjson.OPT_INDENT_2))


def _check_cell(cell: Cell) -> None:
    """Refuse a campaign that was started with other settings, before any other one costs anything."""
    if (cell.folder / CAMPAIGN).exists():
        from autosft.meta.campaign import check_same_settings

        check_same_settings(read_facts(cell.folder), cell.config, cell.folder)


def check_equal(cells: Sequence[Cell], kind: str) -> None:
    """Check that the campaigns differ in nothing but what is swept: settings, fingerprints of what exists.

    Raises:
        FrozenSettingsError: Two differ; names them and what differs.
    """
    planned = [(c.folder, c.seed, campaign_settings(c.config)) for c in cells]
    _compare_settings(planned)
    opened = [(c.folder, c.seed, read_facts(c.folder)) for c in cells if (c.folder / CAMPAIGN).exists()]
    compare_facts(opened, kind)


def compare_facts(opened: Sequence[tuple[Path, int, Facts]], kind: str) -> None:
    """Check campaigns that exist, (folder, campaign seed, facts) each, against the first of their seed.

    Raises:
        FrozenSettingsError: Base, encoder, suites, pool, budget or a setting differs.
    """
    _compare_settings([(folder, seed, facts.settings) for folder, seed, facts in opened])
    shared = [name for name in SEED_FACTS if kind != "sources" or name not in POOL_FACTS]
    first: dict[int, tuple[Path, Facts]] = {}
    for folder, seed, facts in opened:
        reference, other = first.setdefault(seed, (folder, facts))
        earliest, oldest = next(iter(first.values()))
        for name in ALL_FACTS:
            _require(getattr(facts, name) == getattr(oldest, name), name, folder, earliest)
        for name in shared:
            _require(getattr(facts, name) == getattr(other, name), name, folder, reference)


def _require(equal: bool, name: str, folder: Path, other: Path) -> None:
    if not equal:
        raise FrozenSettingsError(
            f"its {name.replace('_', ' ')} differs from that of {other.name}",
            where=str(folder),
            hint="a sweep compares campaigns that share everything else; start a new one with --out",
        )


def _compare_settings(found: Sequence[tuple[Path, int, Mapping[str, Any]]]) -> None:
    first: dict[int, tuple[Path, dict[str, Any]]] = {}
    for folder, seed, settings in found:
        own = {k: v for k, v in settings.items() if not k.startswith(VARIANT_KEYS)}
        other, reference = first.setdefault(seed, (folder, own))
        lines = changed_settings(reference, own)
        if not lines:
            other, oldest = next(iter(first.values()))
            lines = changed_settings(_seedless(oldest), _seedless(own))
        if lines:
            raise FrozenSettingsError(
                f"settings differ from those of {other.name}: {'; '.join(lines)}",
                where=str(folder),
                hint="give the sweep the settings it was started with, or another --out",
            )


def _seedless(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if key not in SEED_KEYS}


def _run_here(cells: Sequence[Cell], jobs: int, emit: Callable[[Event], None]) -> dict[str, str]:
    failed = {}
    for number, cell in enumerate(cells, 1):
        emit(Event("note", f"{cell.folder.name} ({number} of {len(cells)})"))
        failed[cell.folder.name] = _run_cell(cell, emit)
        if failed[cell.folder.name]:
            emit(Event("note", f"{cell.folder.name} failed: {failed[cell.folder.name]}"))
    return failed


def _run_cell(cell: Cell, emit: Callable[[Event], None] | None = None) -> str:
    from autosft.meta.run import run_campaign

    try:
        run_campaign(cell.config, cell.folder, emit)
    except AutosftError as error:
        return str(error)
    return ""


def _die_with_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers; one interrupt, one message
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _run_side_by_side(cells: Sequence[Cell], jobs: int, emit: Callable[[Event], None]) -> dict[str, str]:
    failed: dict[str, str] = {}
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), initializer=_die_with_parent)
    try:
        running: dict[Future[str], str] = {pool.submit(_run_cell, cell): cell.folder.name for cell in cells}
        for done in as_completed(running):
            name = running[done]
            try:
                failed[name] = done.result()
            except BrokenProcessPool:
                failed[name] = "its process was killed"
            text = f"{name}: {failed[name] or 'done'} ({len(failed)} of {len(cells)})"
            emit(Event("note", text))
    except BaseException:
        for process in list((pool._processes or {}).values()):
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return failed
