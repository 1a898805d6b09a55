"""Rows, pools, their files, and how a row becomes tokens."""

from autosft.pool.encode import Encoded, RowEncoder
from autosft.pool.io import BadRow, read_pool, read_written_pool, write_pool
from autosft.pool.rows import (
    as_data,
    base_id,
    clean_text,
    content_id,
    made_row,
    new_row,
    with_prompt,
    with_response,
)
from autosft.pool.table import POOL_SCHEMA, Pool

__all__ = [
    "POOL_SCHEMA",
    "BadRow",
    "Encoded",
    "Pool",
    "RowEncoder",
    "as_data",
    "base_id",
    "clean_text",
    "content_id",
    "made_row",
    "new_row",
    "read_pool",
    "read_written_pool",
    "with_prompt",
    "with_response",
    "write_pool",
]
