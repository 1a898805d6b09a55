"""Rows of different lengths in flat arrays, kept on disk by key.

One file a batch of rows, Arrow's own format without compression, so that reading maps it and copies nothing.
A file appears by a rename and is never changed: readers and writers, threads and processes alike, never wait
for one another. A damaged file is worth nothing and is removed; losing any only costs the work of making it.
"""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from autosft.engine import kernels
from autosft.engine.words import IntArray, UIntArray

_SCHEMA = pa.schema(
    [
        ("key", pa.uint64()),
        ("cut", pa.bool_()),
        ("marked", pa.int32()),
        ("ids", pa.large_list(pa.int32())),
        ("marks", pa.large_list(pa.uint8())),
    ]
)
FOLD_AT = 24
SUFFIX = ".arrow"


@dataclass(frozen=True)
class Ragged:
    """Rows of token ids and of marks, in step.

    Attributes:
        ids: int32: all rows, one after another.
        marks: uint8: 1 where the loss applies.
        offsets: int64 [rows + 1]: row i is `ids[offsets[i]:offsets[i + 1]]`.
        cut: bool [rows]: something was cut off at the end.
    """

    ids: NDArray[np.int32]
    marks: NDArray[np.uint8]
    offsets: IntArray
    cut: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> IntArray:
        """Ids of each row."""
        return np.diff(self.offsets)

    def marked(self) -> IntArray:
        """Return how many ids of each row are marked."""
        found = np.empty(len(self), dtype=np.int64)
        kernels.count_marks(self.marks, self.offsets, found)
        return found

    def take(self, rows: IntArray) -> Ragged:
        """Return some rows, in the order given."""
        lengths = self.lengths[rows]
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
        ids = np.empty(int(offsets[-1]), dtype=np.int32)
        marks = np.empty(int(offsets[-1]), dtype=np.uint8)
        kernels.gather(self.ids, self.marks, self.offsets, rows, offsets[:-1], ids, marks)
        return Ragged(ids, marks, offsets, self.cut[rows])


def joined(parts: Sequence[Ragged]) -> Ragged:
    """Return rows of several batches, one after another."""
    lengths = np.concatenate([part.lengths for part in parts])
    return Ragged(
        np.concatenate([part.ids for part in parts]),
        np.concatenate([part.marks for part in parts]),
        np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)]),
        np.concatenate([part.cut for part in parts]),
    )


@dataclass
class _Shard:
    keys: UIntArray  # sorted
    order: IntArray  # place in `rows` of each sorted key
    marked: IntArray
    rows: Ragged


@dataclass
class RaggedCache:
    """Rows by key, in memory and, given a folder, on disk.

    Attributes:
        folder: Where the files lie; None keeps rows in memory only.
        room_bytes: Files beyond this are removed, those unused for longest first.
    """

    folder: Path | None
    room_bytes: int = 8 << 30
    _shards: list[_Shard] = field(default_factory=list)
    _read: set[str] = field(default_factory=set)

    def find(self, keys: UIntArray) -> tuple[IntArray, IntArray]:
        """Return (shard, row in it) of each key; -1 where it is not known."""
        shard, row = self._look_up(keys, 0)
        if (shard < 0).any() and self.folder is not None:
            known = len(self._shards)
            self._load()
            missing = np.flatnonzero(shard < 0)
            shard[missing], row[missing] = self._look_up(keys[missing], known)
        return shard, row

    def add(self, keys: UIntArray, rows: Ragged) -> None:
        """Remember rows of new keys, on disk too."""
        if not len(keys):
            return
        self._shards.append(_shard(keys, rows, rows.marked()))
        if self.folder is not None:
            self._read.add(_write(self.folder, keys, rows))
            trim(self.folder.parent, self.room_bytes)

    def lengths(self, shard: IntArray, row: IntArray) -> tuple[IntArray, IntArray]:
        """Return (ids, marked ids) of rows as `find` gave them."""
        ids, marked = np.zeros(len(row), dtype=np.int64), np.zeros(len(row), dtype=np.int64)
        for number in np.unique(shard[shard >= 0]).tolist():
            at = shard == number
            ids[at] = self._shards[number].rows.lengths[row[at]]
            marked[at] = self._shards[number].marked[row[at]]
        return ids, marked

    def take(self, shard: IntArray, row: IntArray) -> Ragged:
        """Return rows as `find` gave them, in that order; all must be known."""
        lengths, _ = self.lengths(shard, row)
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
        ids = np.empty(int(offsets[-1]), dtype=np.int32)
        marks = np.empty(int(offsets[-1]), dtype=np.uint8)
        cut = np.zeros(len(row), dtype=bool)
        for number in np.unique(shard).tolist():
            at, own = np.flatnonzero(shard == number), self._shards[number].rows
            kernels.gather(own.ids, own.marks, own.offsets, row[at], offsets[at], ids, marks)
            cut[at] = own.cut[row[at]]
        return Ragged(ids, marks, offsets, cut)

    def _look_up(self, keys: UIntArray, first: int) -> tuple[IntArray, IntArray]:
        shard, row = np.full(len(keys), -1, dtype=np.int64), np.full(len(keys), -1, dtype=np.int64)
        for number in range(first, len(self._shards)):
            own = self._shards[number]
            at = np.minimum(np.searchsorted(own.keys, keys), len(own.keys) - 1)
            hit = own.keys[at] == keys
            shard[hit], row[hit] = number, own.order[at[hit]]
        return shard, row

    def _load(self) -> None:
        """Read files that other processes wrote meanwhile; fold many small ones into one."""
        assert self.folder is not None
        files = sorted(self.folder.glob(f"*{SUFFIX}")) if self.folder.is_dir() else []
        new = [file for file in files if file.name not in self._read]
        for file in new:
            self._read.add(file.name)
            with contextlib.suppress(FileNotFoundError):
                shard = _open(file)
                if shard is not None:
                    self._shards.append(shard)
                    os.utime(file)
        if len(files) >= FOLD_AT:
            _fold(self.folder, files)


def _shard(keys: UIntArray, rows: Ragged, marked: IntArray) -> _Shard:
    order = np.argsort(keys, kind="stable")
    return _Shard(keys[order], order, marked, rows)


def _write(folder: Path, keys: UIntArray, rows: Ragged) -> str:
    offsets = pa.array(rows.offsets)
    table = pa.table(
        [
            pa.array(keys),
            pa.array(rows.cut),
            pa.array(rows.marked().astype(np.int32)),
            pa.LargeListArray.from_arrays(offsets, pa.array(rows.ids)),
            pa.LargeListArray.from_arrays(offsets, pa.array(rows.marks)),
        ],
        schema=_SCHEMA,
    )
    name = f"{time.time_ns()}-{uuid.uuid4().hex[:8]}{SUFFIX}"
    held = folder / f".{name}.tmp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with held.open("wb") as stream, pa.ipc.new_file(stream, _SCHEMA) as writer:
            writer.write_table(table)
        held.rename(folder / name)
    except OSError:
        # A cache that cannot be written is no cache; the work goes on.
        with contextlib.suppress(OSError):
            held.unlink(missing_ok=True)
    return name


def _open(file: Path) -> _Shard | None:
    try:
        with pa.memory_map(str(file)) as source:
            table = pa.ipc.open_file(source).read_all()
        if not table.schema.equals(_SCHEMA) or not table.num_rows:
            raise ValueError("other columns")
        ids, marks = (table.column(name).combine_chunks() for name in ("ids", "marks"))
        ids, marks = (c.chunk(0) if isinstance(c, pa.ChunkedArray) else c for c in (ids, marks))
        offsets = ids.offsets.to_numpy()
        rows = Ragged(
            ids.values.to_numpy(),
            marks.values.to_numpy(),
            offsets,
            table.column("cut").to_numpy(),
        )
        marked = table.column("marked").to_numpy().astype(np.int64)
        return _shard(table.column("key").to_numpy(), rows, marked)
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, ValueError):
        file.unlink(missing_ok=True)
        return None


def _fold(folder: Path, files: list[Path]) -> None:
    """Join files into one; another process may have removed some, and may do the same."""
    shards = []
    for file in files:
        with contextlib.suppress(FileNotFoundError):
            shard = _open(file)
            if shard is not None:
                shards.append(shard)
    if len(shards) < 2:
        return
    keys = np.concatenate([s.keys[np.argsort(s.order)] for s in shards])
    _, first = np.unique(keys, return_index=True)
    _write(folder, keys[first], joined([s.rows for s in shards]).take(first.astype(np.int64)))
    for file in files:
        file.unlink(missing_ok=True)


def sizes(folder: Path) -> dict[str, tuple[int, int]]:
    """Return what each encoder's rows take: folder name -> (files, bytes)."""
    found: dict[str, tuple[int, int]] = {}
    for file in folder.rglob(f"*{SUFFIX}") if folder.is_dir() else ():
        with contextlib.suppress(FileNotFoundError):
            files, total = found.get(file.parent.name, (0, 0))
            found[file.parent.name] = files + 1, total + file.stat().st_size
    return dict(sorted(found.items()))


def trim(folder: Path, room_bytes: int) -> int:
    """Remove the files unused for longest until the rest fits; return the bytes removed."""
    sizes: list[tuple[float, int, Path]] = []
    for file in folder.rglob(f"*{SUFFIX}"):
        with contextlib.suppress(FileNotFoundError):
            found = file.stat()
            sizes.append((found.st_mtime, found.st_size, file))
    over = sum(size for _, size, _ in sizes) - room_bytes
    removed = 0
    for _, size, file in sorted(sizes):
        if removed >= over:
            break
        file.unlink(missing_ok=True)
        removed += size
    return removed
