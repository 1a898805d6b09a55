"""Checks of the installation and of a campaign's folder; every row that fails names its fix. Read-only."""

from __future__ import annotations

import importlib
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from autosft.artifacts import ArtifactStore
from autosft.config import load_config
from autosft.errors import AutosftError, CorruptRecordError
from autosft.memory import read_journal
from autosft.memory.lock import LOCK
from autosft.meta.campaign import Facts, read_facts
from autosft.meta.sealed import HOLDOUT, sealed_folder
from autosft.spend import LEDGER, read_ledger

LOW_DISK_BYTES = 2 * 1024**3
PYTHON = ((3, 11), (3, 14))
State = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Check:
    """One row: what was looked at, how it stands, what was seen, and what to do if it is not `ok`."""

    name: str
    state: State
    seen: str
    fix: str = ""


Row = tuple[State, str, str]


def doctor(out: Path | None) -> list[dict[str, Any]]:
    """Check the installation, and a campaign where a folder is given.

    Args:
        out: Campaign folder, or None.

    Returns:
        One row a check: `name`, `state` (ok, warn, fail), `seen`, `fix` ('' where ok). A check that cannot be
        made because an earlier one failed is left out.
    """
    checks: list[tuple[str, Callable[[], Row]]] = [
        ("python", _python),
        ("torch", _torch),
        ("transformers", lambda: _package("transformers")),
        ("settings", _settings),
        ("lab base", _lab_base),
        ("disk space", lambda: _disk(out or Path.cwd())),
        ("folder", lambda: _writable(out or Path.cwd())),
    ]
    rows = [_run(name, check) for name, check in checks]
    if out is not None:
        rows += _campaign(out)
    return [asdict(row) for row in rows]


def _run(name: str, check: Callable[[], Row]) -> Check:
    try:
        state, seen, fix = check()
    except AutosftError as error:
        state, seen, fix = "fail", f"{error.where}: {error.what}" if error.where else error.what, error.hint
    except Exception as error:  # a check must never hide the others
        state, seen, fix = "fail", f"{type(error).__name__}: {error}", ""
    return Check(name, state, seen, fix or ("" if state == "ok" else "see the message"))


def _python() -> Row:
    low, high = PYTHON
    seen = ".".join(map(str, sys.version_info[:3]))
    if low <= sys.version_info[:2] < high:
        return "ok", seen, ""
    return "fail", seen, f"use Python {low[0]}.{low[1]} to {high[0]}.{high[1] - 1}"


def _torch() -> Row:
    try:
        torch = importlib.import_module("torch")
    except (ImportError, OSError) as error:
        return "fail", f"cannot be imported: {error}", "install autosft again: pip install autosft"
    devices = f"{torch.cuda.device_count()} CUDA devices" if torch.cuda.is_available() else "CPU"
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return "ok", f"{torch.__version__}, {devices}, {cores} usable cores", ""


def _package(name: str) -> Row:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return "ok", version(name), ""
    except PackageNotFoundError:
        return "fail", "not installed", f"pip install {name}"


def _settings() -> Row:
    config = load_config()
    return "ok", f"defaults compose, policy {config.policy.name}", ""


def _lab_base() -> Row:
    from autosft.lab.base import ASSET_DIR, check_base

    check_base(ASSET_DIR)
    return "ok", "checksums match", ""


def _disk(folder: Path) -> Row:
    free = shutil.disk_usage(_nearest(folder)).free
    seen = f"{free / 1024**3:.1f} GiB free"
    if free < LOW_DISK_BYTES:
        return "warn", seen, "free some space: a campaign keeps every checkpoint"
    return "ok", seen, ""


def _writable(folder: Path) -> Row:
    place = _nearest(folder)
    if os.access(place, os.W_OK | os.X_OK):
        return "ok", f"{place} can be written", ""
    return "fail", f"{place} cannot be written", "change its permissions or choose another folder with --out"


def _nearest(folder: Path) -> Path:
    folder = folder.absolute()
    return next(place for place in (folder, *folder.parents) if place.exists())


def _campaign(out: Path) -> Iterator[Check]:
    first = _run("campaign", lambda: _facts(out))
    yield first
    if first.state == "fail":
        return
    facts, store = read_facts(out), ArtifactStore(out / "artifacts")
    yield _run("base", lambda: _base(facts))
    journal = _run("journal", lambda: _journal(out))
    yield journal
    yield _run("artifacts", lambda: _artifacts(store))
    if journal.state == "ok":
        yield _run("records", lambda: _records(out, store))
    yield _run("quarantine", lambda: _quarantine(out))
    yield _run("lock", lambda: _lock(out))
    yield _run("held-out suite", lambda: _seal(out))
    yield _run("spend ledger", lambda: _ledger(out))


def _facts(out: Path) -> Row:
    facts = read_facts(out)
    suites = ", ".join(facts.suites)
    return "ok", f"{facts.name}: {facts.pool_rows:,} rows, {facts.budget_tokens:,} tokens, {suites}", ""


def _base(facts: Facts) -> Row:
    from autosft.executor import base_fingerprint

    found = base_fingerprint(facts.base)
    if found == facts.base_fingerprint:
        return "ok", f"fingerprint {found}", ""
    return (
        "fail",
        f"fingerprint {found}, the campaign's base has {facts.base_fingerprint}",
        f"restore the base in {facts.base}",
    )


def _journal(out: Path) -> Row:
    entries = read_journal(out)
    torn = (out / "journal.jsonl").read_bytes()[-1:] not in (b"", b"\n")
    if torn:
        return (
            "warn",
            f"{len(entries)} entries, the last line is torn",
            "run the campaign again; it drops the torn line",
        )
    return "ok", f"{len(entries)} entries, the hash chain holds", ""


def _artifacts(store: ArtifactStore) -> Row:
    """Re-hash every file of every artifact."""
    n, bad, aside = 0, [], ("staging", "quarantine")
    for record in sorted(store.root.glob("*/*")):
        kind, key = record.parent.name, record.name
        if kind in aside or not record.is_dir():
            continue
        n += 1
        try:
            store.load(kind, key, check_files=True)
        except AutosftError:
            bad.append(f"{kind}/{key}")
    if bad:
        shown = ", ".join(bad[:3]) + (f" and {len(bad) - 3} more" if len(bad) > 3 else "")
        return (
            "fail",
            f"{len(bad)} of {n} do not match their hashes: {shown}",
            f"move them out of {store.root} and run the campaign again: they are computed anew",
        )
    return "ok", f"{n} artifacts match their hashes", ""


def _records(out: Path, store: ArtifactStore) -> Row:
    """Look for what the journal names and the store lacks."""
    wanted = []
    for entry in read_journal(out):
        if entry.kind == "round.recorded":
            wanted.append(("round", entry.data["record"]))
            wanted += [("build", entry.data["build"])] if entry.data["build"] else []
        elif entry.kind == "decision.taken":
            wanted.append(("decision", entry.data["decision"]))
    missing = []
    for kind, key in wanted:
        try:
            store.load(kind, key)
        except AutosftError:
            missing.append(f"{kind}/{key}")
    if missing:
        return (
            "fail",
            f"{len(missing)} of {len(wanted)} records are missing: {', '.join(missing[:3])}",
            "restore them from a copy of the campaign",
        )
    return "ok", f"all {len(wanted)} records the journal names are there", ""


def _quarantine(out: Path) -> Row:
    found = [*(out / "quarantine").glob("*"), *(out / "artifacts" / "quarantine").glob("*")]
    if found:
        return (
            "warn",
            f"{len(found)} damaged things were set aside",
            "look at them, then delete the quarantine folders",
        )
    return "ok", "nothing was set aside", ""


def _lock(out: Path) -> Row:
    try:
        holder = (out / LOCK).read_text().strip()
    except OSError:
        return "ok", "free", ""
    if not holder.isdigit():
        return "ok", "free", ""
    if Path(f"/proc/{holder}").exists() or _alive(int(holder)):
        return "ok", f"held by process {holder}", ""
    return "ok", f"free (process {holder} died holding it; the kernel released it)", ""


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _seal(out: Path) -> Row:
    if not (out / HOLDOUT).exists():
        return "ok", "none", ""
    folder = sealed_folder(out.absolute())
    if not folder.is_dir():
        return (
            "warn",
            f"the digests are here, the sealed items are not in {folder}",
            "move the sealed folder along with the campaign; the held-out score needs it",
        )
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & 0o077:
        return "fail", f"{folder} can be read by others (mode {mode:o})", f"chmod 700 {folder}"
    return "ok", "sealed, for the operator only", ""


def _ledger(out: Path) -> Row:
    lines = read_ledger(out)
    whole = (out / LEDGER).read_bytes().count(b"\n") if (out / LEDGER).exists() else 0
    if whole > len(lines):
        raise CorruptRecordError(
            f"{whole - len(lines)} lines cannot be read", where=str(out / LEDGER), hint="restore the file"
        )
    unsettled = {line["key"] for line in lines if line["event"] == "reserved"} - {
        line["key"] for line in lines if line["event"] == "settled"
    }
    if unsettled:
        return "ok", f"{len(lines)} entries; {len(unsettled)} reservations of killed runs count as spent", ""
    return "ok", f"{len(lines)} entries, all settled", ""
