"""`Pool`: an immutable view over one Arrow table of rows.

Columns hold what actions select on (source, leaf, weight, order key), so that keeping, weighting and ordering
264,000 rows never builds Python objects; `rows()` builds them once, when an action needs texts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from autosft.engine import kernels
from autosft.engine.words import text_buffers
from autosft.errors import EmptyPoolError, PoolError
from autosft.identity import FINGERPRINT_HEX
from autosft.pool.rows import content_id, number_ids, read_requirements, requirements_json, verdicts_json
from autosft.types import Message, Row

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

_MESSAGE = pa.struct([("role", pa.string()), ("content", pa.large_string())])
POOL_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("messages", pa.large_list(_MESSAGE), nullable=False),
        pa.field("requirements", pa.large_string(), nullable=False),
        pa.field("leaf", pa.string()),
        pa.field("parent", pa.string()),
        pa.field("made_by", pa.string()),
        pa.field("method", pa.string()),
        pa.field("verdicts", pa.large_string(), nullable=False),
        pa.field("weight", pa.float64(), nullable=False),
        pa.field("order_key", pa.float64()),
        pa.field("order_jitter", pa.float64(), nullable=False),
    ],
    metadata={b"autosft.pool": b"1"},
)
# Ids are content hashes, so the fingerprint need not read the messages again.
_FINGERPRINT_COLUMNS = [name for name in POOL_SCHEMA.names if name != "messages"]


class Pool:
    """Rows of one or more sources. Every method that changes something returns another pool.

    Args:
        table: Arrow table of `POOL_SCHEMA`. Use `Pool.from_rows` or `read_pool` to get one.

    Raises:
        PoolError: The table has another schema or repeats an id.
    """

    def __init__(self, table: pa.Table) -> None:
        if not table.schema.equals(POOL_SCHEMA):
            raise PoolError("the table does not have the pool's columns", hint=f"needs {POOL_SCHEMA.names}")
        self._table = table.replace_schema_metadata(POOL_SCHEMA.metadata)
        self._rows: tuple[Row, ...] | None = None

    @classmethod
    def from_rows(cls, rows: Iterable[Row]) -> Pool:
        """Make a pool of rows; copies of one conversation are numbered `.2`, `.3`, ... in order."""
        return cls(_as_table(list(rows), ()))

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __repr__(self) -> str:
        return f"Pool({len(self)} rows, {len(set(self.sources))} sources, {self.fingerprint})"

    @property
    def table(self) -> pa.Table:
        """The Arrow table (`POOL_SCHEMA`); never written to."""
        return self._table

    def rows(self) -> tuple[Row, ...]:
        """Return all rows, in order; built once."""
        if self._rows is None:
            self._rows = tuple(_as_rows(self._table))
        return self._rows

    def row(self, index: int) -> Row:
        """Return one row by position."""
        if self._rows is not None:
            return self._rows[index]
        index = range(len(self))[index]
        return _as_rows(self._table.slice(index, 1))[0]

    @cached_property
    def ids(self) -> list[str]:
        """Row ids, in order."""
        return self._list("id")

    @cached_property
    def keys(self) -> NDArray[np.uint64]:
        """Content id of each row as a number: rows of equal keys hold the same conversation."""
        data, offsets = text_buffers(self._table.column("id"))
        keys = np.empty(len(self), dtype=np.uint64)
        bad = kernels.hex_keys(data, offsets, keys)
        if bad >= 0:
            raise PoolError(f"row id {self.ids[bad]!r} is no content id", where=f"row {bad + 1}")
        return keys

    @cached_property
    def sources(self) -> list[str]:
        """Source of each row."""
        return self._list("source")

    @cached_property
    def leaves(self) -> list[str | None]:
        """Taxonomy leaf of each row, or None."""
        return self._list("leaf")

    @cached_property
    def parents(self) -> list[str | None]:
        """Parent id of each row, or None."""
        return self._list("parent")

    @cached_property
    def weights(self) -> FloatArray:
        """Expected copies of each row relative to 1 (float64, read-only)."""
        return self._floats("weight")

    @cached_property
    def order_keys(self) -> FloatArray:
        """Wanted position of each row as a fraction of the budget; NaN where it has none."""
        return self._floats("order_key")

    @cached_property
    def order_jitter(self) -> FloatArray:
        """Width of the uniform noise around each row's order key, a fraction of the budget."""
        return self._floats("order_jitter")

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of the rows, their order and all their fields."""
        digest = hashlib.sha256()
        for name in _FINGERPRINT_COLUMNS:
            column = self._table.column(name)
            if pa.types.is_floating(column.type):
                digest.update(self._floats(name).tobytes())
            else:
                digest.update(orjson.dumps(column.to_pylist()))
            digest.update(name.encode())
        return digest.hexdigest()[:FINGERPRINT_HEX]

    def keep(self, mask: BoolArray | Sequence[bool]) -> Pool:
        """Return the rows where the mask is true.

        Raises:
            PoolError: The mask has another length.
            EmptyPoolError: No row is left.
        """
        chosen = np.asarray(mask, dtype=bool)
        self._check_length(chosen, "mask")
        if not chosen.any():
            raise EmptyPoolError("no row would be left", where="keep", hint="loosen the action's parameters")
        if chosen.all():
            return self
        pool = Pool(self._table.filter(pa.array(chosen)))
        if self._rows is not None:
            pool._rows = tuple(row for row, kept in zip(self._rows, chosen.tolist(), strict=True) if kept)
        return pool

    def with_weights(self, weights: FloatArray | Sequence[float]) -> Pool:
        """Return the pool with other row weights (finite, >= 0)."""
        values = np.asarray(weights, dtype=np.float64)
        self._check_length(values, "weights")
        if not (np.isfinite(values).all() and (values >= 0).all()):
            raise PoolError("weights must be finite and not negative", where="with_weights")
        return Pool(self._set("weight", pa.array(values)))

    def with_order(self, keys: FloatArray | Sequence[float], jitter: float | FloatArray = 0.0) -> Pool:
        """Return the pool with other order keys.

        Args:
            keys: Positions as fractions of the budget in [0, 1]; NaN for anywhere.
            jitter: Width of uniform noise around the keys, one number or one a row, in [0, 1].
        """
        values = np.asarray(keys, dtype=np.float64)
        self._check_length(values, "keys")
        spread = np.broadcast_to(np.asarray(jitter, dtype=np.float64), values.shape)
        known = values[~np.isnan(values)]
        if ((known < 0) | (known > 1)).any() or not ((spread >= 0) & (spread <= 1)).all():
            raise PoolError("order keys and jitter are fractions of the budget in [0, 1]", where="with_order")
        table = self._set("order_key", pa.array(values, mask=np.isnan(values)))
        index = POOL_SCHEMA.get_field_index("order_jitter")
        return Pool(table.set_column(index, POOL_SCHEMA.field(index), pa.array(np.array(spread))))

    def replace(self, indices: Sequence[int], rows: Sequence[Row]) -> Pool:
        """Return the pool with the rows at `indices` replaced; weights and places come with the new rows."""
        if len(indices) != len(rows) or len(set(indices)) != len(indices):
            raise PoolError("needs one row for each index, each index once", where="replace")
        if not rows:
            return self
        kept = np.ones(len(self), dtype=bool)
        kept[list(indices)] = False
        taken = (row_id for row_id, stays in zip(self.ids, kept.tolist(), strict=True) if stays)
        made = _as_table(list(rows), taken, jitter=self.order_jitter[list(indices)])
        source = np.arange(len(self))
        source[list(indices)] = len(self) + np.arange(len(rows))
        both = pa.concat_tables([self._table, made])
        pool = Pool(both.take(pa.array(source)))
        if self._rows is not None:
            patched = list(self._rows)
            for index, row in zip(indices, _as_rows(made), strict=True):
                patched[index] = row
            pool._rows = tuple(patched)
        return pool

    def append(self, rows: Sequence[Row]) -> Pool:
        """Return the pool with rows added at the end."""
        if not rows:
            return self
        return Pool(pa.concat_tables([self._table, _as_table(list(rows), self.ids)]))

    def take(self, indices: Sequence[int] | IntArray) -> Pool:
        """Return the rows at `indices`, in that order (each index once)."""
        if len(set(np.asarray(indices).tolist())) != len(indices):
            raise PoolError("each index may be taken once", where="take")
        return Pool(self._table.take(pa.array(np.asarray(indices, dtype=np.int64))))

    def _list(self, name: str) -> list[Any]:
        return list(self._table.column(name).to_pylist())

    def _floats(self, name: str) -> FloatArray:
        column = self._table.column(name)
        values = np.array(column.to_numpy(zero_copy_only=False), dtype=np.float64)
        values.setflags(write=False)
        return values

    def _set(self, name: str, values: pa.Array) -> pa.Table:
        index = POOL_SCHEMA.get_field_index(name)
        return self._table.set_column(index, POOL_SCHEMA.field(index), values)

    def _check_length(self, values: NDArray[Any], name: str) -> None:
        if values.shape != (len(self),):
            raise PoolError(f"{name} has shape {values.shape}, the pool {len(self)} rows", where="pool")


def _as_table(rows: list[Row], taken: Iterable[str], jitter: FloatArray | None = None) -> pa.Table:
    """Columns of rows; `jitter` is not part of a row and is 0 unless given."""
    counts = np.fromiter((len(r.messages) for r in rows), dtype=np.int64, count=len(rows))
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
    roles = pa.array([m.role for r in rows for m in r.messages], pa.string())
    try:
        texts = pa.array([m.content for r in rows for m in r.messages], pa.large_string())
    except UnicodeEncodeError:
        raise PoolError("a row holds a lone surrogate", hint="make rows with new_row or made_row") from None
    messages = pa.LargeListArray.from_arrays(
        pa.array(offsets), pa.StructArray.from_arrays([roles, texts], fields=list(_MESSAGE))
    )
    columns = [
        pa.array(number_ids(((content_id(r.messages), r.id) for r in rows), taken), pa.string()),
        pa.array([r.source for r in rows], pa.string()),
        messages,
        pa.array([requirements_json(r.requirements) for r in rows], pa.large_string()),
        pa.array([r.leaf for r in rows], pa.string()),
        pa.array([r.parent for r in rows], pa.string()),
        pa.array([r.made_by for r in rows], pa.string()),
        pa.array([r.method for r in rows], pa.string()),
        pa.array([verdicts_json(r.verdicts) for r in rows], pa.large_string()),
        pa.array([float(r.weight) for r in rows], pa.float64()),
        pa.array([r.order_key for r in rows], pa.float64()),
        pa.array(np.zeros(len(rows)) if jitter is None else jitter, pa.float64()),
    ]
    return pa.Table.from_arrays(columns, schema=POOL_SCHEMA)


def _as_rows(table: pa.Table) -> list[Row]:
    messages = table.column("messages").combine_chunks()
    if isinstance(messages, pa.ChunkedArray):
        messages = pa.concat_arrays(messages.chunks) if messages.num_chunks else pa.array([], messages.type)
    offsets = messages.offsets.to_numpy()
    start = int(offsets[0]) if len(offsets) else 0
    flat = messages.flatten()
    roles, texts = flat.field("role").to_pylist(), flat.field("content").to_pylist()
    turns = [Message(role, text) for role, text in zip(roles, texts, strict=True)]
    bounds = (offsets - start).tolist()
    names = [n for n in POOL_SCHEMA.names if n not in ("messages", "order_jitter")]
    columns = {name: table.column(name).to_pylist() for name in names}
    rows = []
    for i, row_id in enumerate(columns["id"]):
        verdicts = columns["verdicts"][i]
        rows.append(
            Row(
                row_id,
                columns["source"][i],
                tuple(turns[bounds[i] : bounds[i + 1]]),
                read_requirements(columns["requirements"][i]),
                columns["leaf"][i],
                columns["parent"][i],
                columns["made_by"][i],
                columns["method"][i],
                {} if verdicts == "{}" else orjson.loads(verdicts),
                columns["weight"][i],
                columns["order_key"][i],
            )
        )
    return rows
