"""The queue: one SQLite file in an environment's folder, a folder of spec, log and exit record for each job.

ROOT/queue.sqlite   what was submitted and how it stands
ROOT/runner.lock    held by the one runner that serves the queue
ROOT/ID/            job.json (what to run), log, exit.json (how an attempt ended)

Whoever submits may end at once: a runner of its own process group starts jobs, and a job belongs to none of
them. A runner that dies is replaced by the next one who looks; it finds the jobs that still run and takes
them over.
"""

from __future__ import annotations

import codecs
import fcntl
import os
import secrets
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import orjson

from autosft.artifacts import write_atomic
from autosft.errors import JobError
from autosft.identity import fingerprint

QUEUED, RUNNING, DONE, FAILED, CANCELLED = "queued", "running", "done", "failed", "cancelled"
ACTIVE = frozenset({QUEUED, RUNNING})
SPEC, LOG, EXIT = "job.json", "log", "exit.json"
_WAIT_S = 30.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT UNIQUE NOT NULL, kind TEXT NOT NULL, label TEXT NOT NULL, state TEXT NOT NULL,
    priority INTEGER NOT NULL, devices INTEGER NOT NULL, retries INTEGER NOT NULL, timeout_s REAL,
    attempts INTEGER NOT NULL DEFAULT 0, cause TEXT NOT NULL DEFAULT '', handle TEXT NOT NULL DEFAULT '',
    held TEXT NOT NULL DEFAULT '[]', cancel INTEGER NOT NULL DEFAULT 0,
    submitted REAL NOT NULL, started REAL, ended REAL
)
"""


@dataclass(frozen=True, slots=True)
class RunnerSettings:
    """How an environment's jobs are run.

    Attributes:
        backend: `local`, `slurm` or `ray`.
        slots: Devices that running jobs may hold together.
        options: Of the backend, `key=value`: for `slurm` parameters of submitit (`slurm_partition=gpu`), for
            `ray` its `address`.
        idle_s: Seconds without work after which a runner ends.
    """

    backend: str = "local"
    slots: int = 1
    options: tuple[str, ...] = ()
    idle_s: float = 30.0


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job as the queue knows it; times are seconds since the epoch.

    Attributes:
        number: Order of submission.
        id: Name.
        kind: What it does: `train`, `eval`, `data` and so on.
        label: One line for people.
        state: `queued`, `running`, `done`, `failed` or `cancelled`.
        priority: Higher goes first.
        devices: Slots it holds while it runs.
        retries: Further attempts after it was lost.
        timeout_s: Of an attempt, or None.
        attempts: Started so far.
        cause: Why it failed or was started again.
        handle: The backend's name for the running attempt.
        held: Numbers of the slots it holds.
        cancel: Whether someone asked for its end.
        submitted: When it was submitted; `started` and `ended`: of the last attempt, or None.
    """

    number: int
    id: str
    kind: str
    label: str
    state: str
    priority: int
    devices: int
    retries: int
    timeout_s: float | None
    attempts: int
    cause: str
    handle: str
    held: tuple[int, ...]
    cancel: bool
    submitted: float
    started: float | None
    ended: float | None

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return asdict(self)


_FIELDS = tuple(field.name for field in fields(JobRecord))


class JobQueue:
    """The jobs of an environment.

    Args:
        root: Its folder; made when the first job is submitted.
        settings: How jobs run; stored with the queue. None: as stored, or the defaults.
    """

    def __init__(self, root: Path, settings: RunnerSettings | None = None) -> None:
        self.root = Path(root).expanduser().absolute()
        self._settings = settings

    # --- for those who want something done

    def submit(
        self,
        kind: str,
        command: Sequence[str],
        *,
        key: Any = None,
        label: str = "",
        priority: int = 0,
        devices: int = 1,
        retries: int = 1,
        timeout_s: float | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> str:
        """Submit a command; return at once with the job's id.

        Args:
            kind: What it does, one word.
            command: Program and arguments.
            key: JSON data that names the work: submitted again while it is queued or running, the same job is
                returned, and one that ended is queued anew. None: every submission is another job.
            label: One line for people.
            priority: Higher goes first; equal ones in order of submission.
            devices: Slots it needs; one with more than there are runs alone.
            retries: Further attempts after it was lost (its process or node died without a word).
            timeout_s: Of an attempt.
            environment: Variables to set.

        Raises:
            JobError: The queue cannot be written, or an argument is out of range.
        """
        if devices < 1 or retries < 0 or not command:
            raise JobError("a job needs a command, a device and no negative retries", where=kind)
        name = secrets.token_hex(6) if key is None else self.name_of(kind, key)
        with self._open() as db:
            known = db.execute("SELECT state FROM jobs WHERE id = ?", (name,)).fetchone()
            if known is None or known[0] not in ACTIVE:
                folder = self.root / name
                folder.mkdir(parents=True, exist_ok=True)
                (folder / EXIT).unlink(missing_ok=True)
                spec = {"command": [str(part) for part in command], "environment": dict(environment or {})}
                write_atomic(folder / SPEC, orjson.dumps(spec, option=orjson.OPT_INDENT_2))
                values = (kind, label, priority, devices, retries, timeout_s, time.time(), name)
                if known is None:
                    db.execute(
                        "INSERT INTO jobs (kind, label, priority, devices, retries, timeout_s, submitted, id,"
                        " state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'queued')",
                        values,
                    )
                else:
                    db.execute(
                        "UPDATE jobs SET kind = ?, label = ?, priority = ?, devices = ?, retries = ?,"
                        " timeout_s = ?, submitted = ?, state = 'queued', attempts = 0, cause = '',"
                        " handle = '', cancel = 0, started = NULL, ended = NULL WHERE id = ?",
                        values,
                    )
        self.ensure_runner()
        return name

    @staticmethod
    def name_of(kind: str, key: Any) -> str:
        """Return the id of work that is named by a key."""
        return fingerprint([kind, key])[:12]

    def cancel(self, name: str) -> JobRecord:
        """Ask for a job's end: at once where it waits, by the runner where it runs.

        Raises:
            JobError: There is no such job.
        """
        record = self.get(name)
        with self._open() as db:
            db.execute(
                "UPDATE jobs SET state = 'cancelled', cause = 'cancelled', ended = ?"
                " WHERE id = ? AND state = 'queued'",
                (time.time(), record.id),
            )
            db.execute("UPDATE jobs SET cancel = 1 WHERE id = ? AND state = 'running'", (record.id,))
        if record.state == RUNNING:
            self.ensure_runner()
        return self.get(record.id)

    def get(self, name: str) -> JobRecord:
        """Return a job by its id or an unambiguous beginning of it.

        Raises:
            JobError: None or several match.
        """
        found = [record for record in self.jobs() if record.id.startswith(name)]
        if len(found) != 1:
            what = f"no job {name!r}" if not found else f"{len(found)} jobs begin with {name!r}"
            raise JobError(what, where=str(self.root), hint="`autosft jobs DIR` lists them")
        return found[0]

    def jobs(self, *states: str) -> list[JobRecord]:
        """Return all jobs, or those in given states, in order of submission."""
        if not self._file.exists():
            return []
        with self._open() as db:
            cursor = db.execute(f"SELECT {', '.join(_FIELDS)} FROM jobs ORDER BY number")
            rows = [dict(zip(_FIELDS, row, strict=True)) for row in cursor]
        records = [
            JobRecord(**{**row, "held": tuple(orjson.loads(row["held"])), "cancel": bool(row["cancel"])})
            for row in rows
        ]
        return [record for record in records if not states or record.state in states]

    def read_log(self, name: str, offset: int = 0, limit: int = 1 << 20) -> tuple[str, int]:
        """Return what a job printed from a byte on, and where to go on reading.

        A character whose last bytes are not there yet is left for the next call.
        """
        try:
            with (self.root / self.get(name).id / LOG).open("rb") as stream:
                stream.seek(offset)
                raw = stream.read(limit)
        except FileNotFoundError:
            return "", offset
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        text = decoder.decode(raw)
        return text, offset + len(raw) - len(decoder.getstate()[0])

    def wait(self, name: str, timeout_s: float | None = None, poll_s: float = 0.2) -> JobRecord:
        """Return a job once it has ended; a runner that dies meanwhile is replaced.

        Raises:
            JobError: There is no such job, or the time is over.
        """
        until = None if timeout_s is None else time.monotonic() + timeout_s
        while (record := self.get(name)).state in ACTIVE:
            if until is not None and time.monotonic() > until:
                raise JobError(f"job {record.id} is still {record.state}", where=str(self.root))
            self.ensure_runner()
            time.sleep(poll_s)
        return record

    # --- the runner's side

    @property
    def settings(self) -> RunnerSettings:
        """How jobs run here."""
        if self._settings is not None:
            return self._settings
        try:
            data = orjson.loads((self.root / "runner.json").read_bytes())
            return RunnerSettings(**{**data, "options": tuple(data["options"])})
        except (OSError, ValueError, TypeError, KeyError):
            return RunnerSettings()

    def ensure_runner(self) -> None:
        """Start a runner where none is; it lives on when the caller ends."""
        with self.runner_lock() as held:
            if not held:
                return
        if self._settings is not None:
            wanted = orjson.dumps(asdict(self._settings))
            if _read(self.root / "runner.json") != wanted:
                write_atomic(self.root / "runner.json", wanted)
        from autosft.executor.processes import worker_environment

        with (self.root / "runner.log").open("ab") as log:
            subprocess.Popen(
                [sys.executable, "-P", "-m", "autosft.executor.jobs.runner", str(self.root)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=worker_environment(os.environ, threads=1),
                start_new_session=True,
            )

    @contextmanager
    def runner_lock(self) -> Iterator[bool]:
        """Hold the runner's lock for the block; gives False where a runner holds it."""
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / "runner.lock").open("ab") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True

    def mark_started(self, record: JobRecord, held: Sequence[int]) -> None:
        """Record an attempt that is about to start."""
        with self._open() as db:
            db.execute(
                "UPDATE jobs SET state = 'running', attempts = attempts + 1, handle = '', held = ?,"
                " started = ?, ended = NULL WHERE id = ?",
                (orjson.dumps(list(held)).decode(), time.time(), record.id),
            )

    def mark_handle(self, record: JobRecord, handle: str) -> None:
        """Record the backend's name for the attempt."""
        with self._open() as db:
            db.execute("UPDATE jobs SET handle = ? WHERE id = ?", (handle, record.id))

    def mark_ended(self, record: JobRecord, state: str, cause: str) -> None:
        """Record how a job ended, or with state `queued` that it waits for another attempt."""
        with self._open() as db:
            db.execute(
                "UPDATE jobs SET state = ?, cause = ?, handle = '', held = '[]', cancel = 0, ended = ?"
                " WHERE id = ?",
                (state, cause, time.time(), record.id),
            )

    @property
    def _file(self) -> Path:
        return self.root / "queue.sqlite"

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._file, timeout=_WAIT_S, isolation_level=None)) as db:
                db.execute("PRAGMA journal_mode=WAL")
                db.execute("BEGIN IMMEDIATE")
                db.execute(_SCHEMA)
                yield db
                db.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            raise JobError(
                f"the queue cannot be used ({error})", where=str(self._file), hint="is the folder writable?"
            ) from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
