"""Content-addressed artifacts: a folder a step, named by a fingerprint of the step's inputs.

A step writes into a staging folder; `record.json` is written last and the folder is renamed into place, so
a folder with a record is complete and a killed step leaves nothing behind that a later run could mistake
for a result. The record holds a hash of itself and of every file beside it.

    ROOT/<kind>/<fingerprint>/record.json
    ROOT/<kind>/<fingerprint>/<files of the step>
    ROOT/completed.jsonl          one line a step that was finished; a step on it twice was done twice
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from autosft.errors import ArtifactError, CorruptRecordError
from autosft.identity import fingerprint, hash_file

RECORD = "record.json"
SCHEMA = 1


@dataclass(frozen=True)
class Artifact:
    """A finished step.

    Attributes:
        kind: Step name, the folder under the store's root.
        fingerprint: Fingerprint of the step's inputs.
        path: The artifact's folder.
        data: Deterministic results; equal inputs give equal data.
        measured: Wall times, throughput, host: what may differ between equal runs.
        files: File name -> SHA-256.
    """

    kind: str
    fingerprint: str
    path: Path
    data: Mapping[str, Any]
    measured: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    def file(self, name: str) -> Path:
        """Return the path of one of the artifact's files.

        Raises:
            ArtifactError: The artifact has no such file.
        """
        if name not in self.files:
            raise ArtifactError(
                f"no file named {name!r}", where=str(self.path), hint=f"has {sorted(self.files)}"
            )
        return self.path / name


@dataclass
class Staging:
    """An artifact being written: put files into `path`, results into `data` and `measured`."""

    path: Path
    data: dict[str, Any] = field(default_factory=dict)
    measured: dict[str, Any] = field(default_factory=dict)


class ArtifactStore:
    """A folder of artifacts. Safe for several processes: a rename publishes, the first one wins."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def folder(self, kind: str, key: str) -> Path:
        """Return where an artifact lies or would lie."""
        return self.root / kind / key

    def find(self, kind: str, key: str) -> Artifact | None:
        """Return a finished artifact, or None; a corrupt one is moved to `ROOT/quarantine` and reported as
        None."""
        try:
            return self.load(kind, key)
        except CorruptRecordError:
            self.quarantine(kind, key)
            return None
        except ArtifactError:
            return None

    def load(self, kind: str, key: str, *, check_files: bool = False) -> Artifact:
        """Read a finished artifact.

        Args:
            kind: Step name.
            key: Fingerprint of the step's inputs.
            check_files: Also re-hash every file (slow for checkpoints).

        Raises:
            ArtifactError: There is none.
            CorruptRecordError: The record or a file does not match its hash.
        """
        path = self.folder(kind, key)
        try:
            record = orjson.loads((path / RECORD).read_bytes())
            body, digest = record["body"], record["sha"]
        except FileNotFoundError:
            raise ArtifactError(f"no finished {kind} {key}", where=str(path)) from None
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptRecordError(f"unreadable record: {error}", where=str(path / RECORD)) from None
        if fingerprint(body) != digest:
            raise CorruptRecordError("record does not match its own hash", where=str(path / RECORD))
        for name, sha in body["files"].items():
            file = path / name
            if not file.exists() or (check_files and hash_file(file) != sha):
                raise CorruptRecordError("file is missing or changed", where=str(file))
        return Artifact(kind, key, path, body["data"], body["measured"], body["files"])

    @contextmanager
    def create(self, kind: str, key: str, inputs: Mapping[str, Any] | None = None) -> Iterator[Staging]:
        """Write an artifact; it appears complete when the block ends, and not at all if the block raises.

        Args:
            kind: Step name.
            key: Fingerprint of the step's inputs.
            inputs: The step's inputs, stored in the record for readers.
        """
        final = self.folder(kind, key)
        staging = self.root / "staging" / f"{kind}-{key}-{os.getpid()}-{time.monotonic_ns()}"
        staging.mkdir(parents=True)
        step = Staging(staging)
        try:
            yield step
            self._publish(step, kind, key, dict(inputs or {}), final)
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def _publish(self, step: Staging, kind: str, key: str, inputs: dict[str, Any], final: Path) -> None:
        names = sorted(str(p.relative_to(step.path)) for p in step.path.rglob("*") if p.is_file())
        files = {name: hash_file(step.path / name) for name in names}
        body = {
            "schema": SCHEMA,
            "kind": kind,
            "fingerprint": key,
            "inputs": inputs,
            "data": step.data,
            "measured": step.measured,
            "files": files,
        }
        body = orjson.loads(orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY))
        for name in names:
            sync_file(step.path / name)
        write_atomic(
            step.path / RECORD,
            orjson.dumps({"sha": fingerprint(body), "body": body}, option=orjson.OPT_INDENT_2),
        )
        final.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.rename(step.path, final)
            self._note_completion(kind, key)
        except OSError:
            # Another process finished the same step first (keep its result), or a partial folder is there.
            if self.find(kind, key) is None:
                shutil.rmtree(final, ignore_errors=True)
                os.rename(step.path, final)
            self._note_completion(kind, key)
        sync_folder(final.parent)

    def _note_completion(self, kind: str, key: str) -> None:
        line = (
            orjson.dumps({"kind": kind, "fingerprint": key, "time": time.time(), "pid": os.getpid()}) + b"\n"
        )
        # One short O_APPEND write is atomic, so processes can share the file.
        handle = os.open(self.root / "completed.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(handle, line)
        finally:
            os.close(handle)

    def completions(self) -> list[tuple[str, str]]:
        """Return (kind, fingerprint) of every finished step, oldest first."""
        path = self.root / "completed.jsonl"
        lines = path.read_bytes().splitlines() if path.exists() else []
        return [(line["kind"], line["fingerprint"]) for line in map(orjson.loads, lines)]

    def quarantine(self, kind: str, key: str) -> Path:
        """Move an artifact aside so that it is computed anew; return its new place."""
        target = self.root / "quarantine" / f"{kind}-{key}-{time.time_ns()}"
        target.parent.mkdir(parents=True, exist_ok=True)
        os.rename(self.folder(kind, key), target)
        return target

    def sweep(self) -> None:
        """Remove staging folders left by killed steps of processes that no longer run."""
        for folder in (self.root / "staging").glob("*"):
            pid = folder.name.rsplit("-", 2)[-2]
            if not (pid.isdigit() and Path(f"/proc/{pid}").exists()):
                shutil.rmtree(folder, ignore_errors=True)


def write_atomic(path: Path, content: bytes) -> None:
    """Write a file so that a reader sees the old or the new content, and a crash loses neither."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with temporary.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(temporary, path)
    sync_folder(path.parent)


def is_leftover(path: Path) -> bool:
    """Say whether a file is what `write_atomic` leaves behind when it is killed in mid-write."""
    return path.name.startswith(".") and path.name.endswith(".tmp")


def sync_file(path: Path) -> None:
    """Flush a file to the disk."""
    with path.open("rb") as stream:
        os.fsync(stream.fileno())


def sync_folder(path: Path) -> None:
    """Flush a folder's entries to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
