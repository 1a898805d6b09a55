"""Token counts on disk, by content id: written once, shared by rounds, campaigns and processes.

Every save is a new file that appears by a rename, so readers and writers never wait for one another; a reader
that finds many files folds them into one. Losing any of them only costs the counting.
"""

from __future__ import annotations

import io
import os
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from autosft.artifacts import write_atomic

_RECORD = np.dtype([("key", "<u8"), ("tokens", "<i4"), ("loss", "<i4")])
_FOLD_AT = 32


class CountCache:
    """Counts of one encoder.

    Args:
        folder: Where the files lie; None keeps counts in memory only.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._known: dict[int, tuple[int, int]] | None = None

    @property
    def known(self) -> dict[int, tuple[int, int]]:
        """Content id as an integer -> (tokens, loss tokens)."""
        if self._known is None:
            self._known = self._read()
        return self._known

    def add(self, counts: Mapping[int, tuple[int, int]]) -> None:
        """Remember counts, on disk too."""
        self.known.update(counts)
        if self._folder is not None and counts:
            self._write(self._folder, counts)

    def _read(self) -> dict[int, tuple[int, int]]:
        if self._folder is None or not self._folder.is_dir():
            return {}
        known: dict[int, tuple[int, int]] = {}
        files = sorted(self._folder.glob("*.npy"))
        read = []
        for file in files:
            try:
                table = np.load(file, allow_pickle=False)
                if table.dtype != _RECORD:
                    raise ValueError("other columns")
            except FileNotFoundError:
                continue  # folded by another process meanwhile
            except (ValueError, OSError, EOFError):
                file.unlink(
                    missing_ok=True
                )  # a damaged cache file is worth nothing; the counts are made anew
                continue
            read.append(file)
            known.update(
                zip(
                    table["key"].tolist(),
                    zip(table["tokens"].tolist(), table["loss"].tolist(), strict=True),
                    strict=True,
                )
            )
        if len(read) >= _FOLD_AT:
            self._write(self._folder, known)
            for file in read:
                file.unlink(missing_ok=True)
        return known

    @staticmethod
    def _write(folder: Path, counts: Mapping[int, tuple[int, int]]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        table = np.array([(key, *pair) for key, pair in counts.items()], dtype=_RECORD)
        stream = io.BytesIO()
        np.save(stream, table)
        write_atomic(folder / f"{time.time_ns()}-{os.getpid()}.npy", stream.getvalue())
