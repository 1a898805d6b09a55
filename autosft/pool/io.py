"""Reading and writing pools. A user's files are only ever read."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from autosft.errors import PoolError
from autosft.pool.formats import row_of
from autosft.pool.remote import Progress, Say, files_at, is_url
from autosft.pool.rows import ID_HEX, base_id
from autosft.pool.table import POOL_SCHEMA, Pool
from autosft.types import Row

_LINES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz", ".jsonl.zst", ".ndjson.zst")
_SUFFIXES = (*_LINES, ".parquet", ".json")
_NAMED = 5
_BATCH = 10_000


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that cannot be used: file, line (or row number, from 1) and why."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"


def read_pool(
    path: Path | str,
    *,
    bad_rows: Literal["refuse", "skip"] = "refuse",
    bad_files: Literal["refuse", "skip"] = "refuse",
    say: Say | None = None,
) -> tuple[Pool, list[BadRow]]:
    """Read rows from a file, a folder, or a URL of an object store.

    Known: parquet; JSON lines, plain, `.gz` or `.zst`; a JSON list; a folder of these; saved `datasets`.
    Records hold OpenAI `messages`, ShareGPT `conversations`, or Alpaca or prompt/response columns.

    Args:
        path: File or folder; or a URL such as `s3://bucket/rows`, whose files are brought here one at a time.
        bad_rows: `refuse` raises if any row is unusable; `skip` leaves it out and reports it.
        bad_files: The same for a file that is damaged or cannot be read; it is reported with line 0.
        say: Gets a line for people about progress now and then.

    Returns:
        The pool, and the rows and files that were left out.

    Raises:
        PoolError: Nothing to read there, a file is damaged, bad rows are refused, or none is usable.
    """
    tables: list[Pool] = []
    rows: list[Row] = []
    bad: list[BadRow] = []
    progress: Progress | None = None
    for name, n_files, file in _sources(path):
        progress = progress or Progress(n_files, say)
        before = len(rows), len(tables)
        try:
            if isinstance(file, PoolError):
                raise file
            _read_file(name, file, tables, rows, bad)
        except PoolError as error:
            if bad_files == "refuse":
                raise
            del rows[before[0] :], tables[before[1] :]
            bad.append(BadRow(name, 0, error.what))
        progress.file_read(len(rows) - before[0] + sum(len(t) for t in tables[before[1] :]))
    unusable = [row for row in bad if row.line]
    if unusable and bad_rows == "refuse":
        raise PoolError(
            f"{len(unusable)} rows cannot be used, the first: {'; '.join(map(str, unusable[:_NAMED]))}",
            where=str(path),
            hint="mend them, or set pool.bad_rows=skip",
        )
    pool = _joined(tables, rows)
    if not len(pool):
        first = f", the first: {bad[0]}" if bad else ""
        raise PoolError(f"no usable row ({len(bad)} unusable{first})", where=str(path))
    return pool, bad


def _sources(path: Path | str) -> Iterator[tuple[str, int, Path | PoolError]]:
    """Return (name, number of files, local file or why there is none) of everything to read."""
    if is_url(path):
        yield from files_at(str(path), _SUFFIXES)
        return
    path = Path(path)
    if not path.exists():
        raise PoolError("no such file or folder", where=str(path))
    files = _files(path)
    yield from ((str(file), len(files), file) for file in files)


def _read_file(name: str, file: Path, tables: list[Pool], rows: list[Row], bad: list[BadRow]) -> None:
    """Add a file's rows to what was read; a row that cannot be used goes to `bad`.

    Raises:
        PoolError: The file is damaged.
    """
    native = _native(file, bad) if file.suffix == ".parquet" else None
    if native is not None:
        tables.append(native)
        return
    source = _stem(file)
    for line, record in _records(file):
        try:
            if isinstance(record, PoolError):
                raise record
            rows.append(row_of(record, source))
        except PoolError as error:
            bad.append(BadRow(name, line, error.what))


def read_written_pool(path: Path) -> Pool:
    """Read a file that `write_pool` wrote inside an artifact; what `read_pool` checks was checked then.

    Raises:
        PoolError: It cannot be read, or is another file.
    """
    try:
        table = pq.read_table(path, memory_map=True)
    except (OSError, pa.ArrowException) as error:
        raise PoolError(f"damaged or unreadable: {error}", where=str(path)) from None
    if (table.schema.metadata or {}).get(b"autosft.pool") != b"1":
        raise PoolError("not a pool that was written here", where=str(path))
    return Pool(table.cast(POOL_SCHEMA))


def write_pool(pool: Pool, path: Path | str) -> None:
    """Write a pool as parquet; `read_pool` gives it back identically."""
    pq.write_table(pool.table, str(path), compression="zstd", row_group_size=32_768)


def _joined(tables: list[Pool], rows: list[Row]) -> Pool:
    if len(tables) == 1 and not rows:
        return tables[0]
    first = tables[0] if tables else Pool.from_rows([])
    for table in tables[1:]:
        first = first.append(table.rows())
    return first.append(rows)


def _files(path: Path) -> list[Path]:
    if path.is_file():
        if not path.name.endswith(_SUFFIXES):
            raise PoolError("unknown kind of file", where=str(path), hint=f"known: {', '.join(_SUFFIXES)}")
        return [path]
    if (path / "dataset_dict.json").is_file():
        if (path / "train").is_dir():
            return [path / "train"]
        raise PoolError(
            "a saved dataset without a train split", where=str(path), hint="give one split's folder"
        )
    if (path / "dataset_info.json").is_file() and (path / "state.json").is_file():
        return [path]
    files = sorted(f for f in path.rglob("*") if f.is_file() and f.name.endswith(_SUFFIXES))
    if not files:
        raise PoolError(
            "no file of rows in this folder", where=str(path), hint=f"known: {', '.join(_SUFFIXES)}"
        )
    return files


def _stem(file: Path) -> str:
    return file.name.split(".", 1)[0] or file.name


def _records(file: Path) -> Iterator[tuple[int, Any]]:
    """Yield (line or row number, record or the error of reading it)."""
    try:
        if file.is_dir():
            yield from _saved_dataset(file)
        elif file.suffix == ".parquet":
            yield from _parquet(file)
        elif file.suffix == ".json":
            yield from enumerate(_json_list(file), start=1)
        else:
            with _open(file) as stream:
                for line, text in enumerate(stream, start=1):
                    if text.strip():
                        yield line, _record(text.removeprefix(b"\xef\xbb\xbf") if line == 1 else text)
    except (OSError, EOFError, zlib.error, pa.ArrowException) as error:
        raise PoolError(f"damaged or unreadable: {error}", where=str(file)) from None


def _open(file: Path) -> IO[bytes] | gzip.GzipFile:
    if file.suffix == ".gz":
        return gzip.open(file, "rb")
    if file.suffix == ".zst":
        import zstandard

        try:
            return io.BytesIO(zstandard.ZstdDecompressor().stream_reader(file.read_bytes()).readall())
        except zstandard.ZstdError as error:
            raise PoolError(f"damaged: {error}", where=str(file)) from None
    return file.open("rb")


def _record(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except ValueError as strict:
        try:
            # The strict parser refuses escaped lone surrogates; they become U+FFFD like everywhere else.
            return json.loads(text.decode("utf-8"))
        except (ValueError, RecursionError):
            return PoolError(f"not JSON: {strict}")


def _json_list(file: Path) -> list[Any]:
    found = _record(file.read_bytes())
    if isinstance(found, PoolError):
        raise PoolError(found.what, where=str(file))
    if not isinstance(found, list):
        raise PoolError("not a list of records", where=str(file), hint="JSON lines need the suffix .jsonl")
    return found


def _parquet(file: Path) -> Iterator[tuple[int, Any]]:
    number = 0
    with pq.ParquetFile(file) as parquet:
        for batch in parquet.iter_batches(batch_size=_BATCH):
            for record in batch.to_pylist():
                number += 1
                yield number, record


def _saved_dataset(folder: Path) -> Iterator[tuple[int, Any]]:
    import datasets

    try:
        dataset = datasets.load_from_disk(str(folder))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PoolError(f"not a saved dataset: {error}", where=str(folder)) from None
    yield from enumerate(dataset, start=1)


def _native(file: Path, bad: list[BadRow]) -> Pool | None:
    """Read a file that `write_pool` wrote; None if it is another parquet file."""
    try:
        if (pq.read_schema(file).metadata or {}).get(b"autosft.pool") != b"1":
            return None
        pool = Pool(pq.read_table(file).cast(POOL_SCHEMA))
    except (OSError, pa.ArrowException) as error:
        raise PoolError(f"damaged or unreadable: {error}", where=str(file)) from None
    fits = _own_ids(pool)
    copies = pc.value_counts(pool.table.column("id"))
    repeats = {v["values"] for v in copies.filter(pc.greater(copies.field("counts"), 1)).to_pylist()}
    if fits.all() and not repeats:
        return pool
    seen: set[str] = set()
    for place, row_id in enumerate(pool.ids):
        if not fits[place] or row_id in seen:
            why = "repeats" if fits[place] else "does not match the messages"
            bad.append(BadRow(str(file), place + 1, f"id {row_id} {why}"))
            fits[place] = False
        seen.add(row_id)
    return pool.keep(fits)


def _own_ids(pool: Pool) -> NDArray[np.bool_]:
    """Return which rows carry the id of their content."""
    messages = pool.table.column("messages").combine_chunks()
    messages = messages if isinstance(messages, pa.Array) else pa.concat_arrays(messages.chunks)
    turns = messages.flatten()
    pairs = list(zip(turns.field("role").to_pylist(), turns.field("content").to_pylist(), strict=True))
    bounds = np.concatenate([[0], np.cumsum(np.diff(messages.offsets.to_numpy()))]).tolist()
    found = np.zeros(len(pool), dtype=bool)
    for place, row_id in enumerate(pool.ids):
        digest = hashlib.sha256(orjson.dumps(pairs[bounds[place] : bounds[place + 1]])).hexdigest()
        found[place] = base_id(row_id) == digest[:ID_HEX]
    return found
