"""Where a public suite's file is found: a given path, a data folder, or the Hugging Face hub.

The data folder is `$AUTOSFT_DATA`; it holds the files by the names that their publishers gave them,
directly or in a folder named like the suite.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autosft.errors import SuiteError
from autosft.evals.suites.sealed import refuse_sealed

DATA = "AUTOSFT_DATA"


@dataclass(frozen=True, slots=True)
class Source:
    """Where a suite's data come from.

    Attributes:
        suite: Suite name.
        files: File names it may have, the preferred one first.
        folders: Names of folders it may lie in.
        hub: Repository on the Hugging Face hub.
        split: Split there.
        config: Configuration there, or None.
        origin: Where people get the file.
    """

    suite: str
    files: tuple[str, ...]
    folders: tuple[str, ...]
    hub: str
    split: str
    origin: str
    config: str | None = None


def read_source(source: Source, path: str | Path | None) -> tuple[list[dict[str, Any]], str]:
    """Return a suite's rows and where they came from.

    Args:
        source: Which suite.
        path: File, or folder that holds it; looked up where None.

    Raises:
        SuiteError: There is no such file and no hub, or the file is not JSON lines; says how to get it.
    """
    file = _locate(source, path)
    if file is not None:
        return _read_lines(file), str(file)
    if os.environ.get("HF_HUB_OFFLINE", "") not in {"", "0"}:
        raise _missing(source, "the hub is switched off (HF_HUB_OFFLINE)")
    try:
        from datasets import load_dataset

        rows = load_dataset(source.hub, source.config, split=source.split)
    except Exception as error:
        # Anything from a resolver's error to a moved repository; people need to know what to do, not which.
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise _missing(source, f"the hub's {source.hub} could not be read: {first[:160]}") from None
    return [dict(row) for row in rows], f"hub:{source.hub}"


def _locate(source: Source, path: str | Path | None) -> Path | None:
    if path is not None:
        given = Path(path)
        refuse_sealed(given)
        if given.is_file():
            return given
        for folder in (given, *(given / name for name in source.folders)):
            for name in source.files:
                if (folder / name).is_file():
                    return folder / name
        raise SuiteError(
            f"no file of suite {source.suite} there",
            where=str(path),
            hint=f"give the file or a folder with {' or '.join(source.files)}",
        )
    root = os.environ.get(DATA)
    if not root:
        return None
    for folder in (Path(root), *(Path(root) / name for name in source.folders)):
        for name in source.files:
            if (folder / name).is_file():
                return folder / name
    return None


def _missing(source: Source, why: str) -> SuiteError:
    return SuiteError(
        f"the data of suite {source.suite} are missing: {why}",
        where=source.files[0],
        hint=f"get it from {source.origin}; then give its path (--data, path=) or set {DATA} to its folder",
    )


def _read_lines(file: Path) -> list[dict[str, Any]]:
    try:
        content = file.read_bytes()
        if file.suffix == ".gz":
            content = gzip.decompress(content)
    except (OSError, EOFError) as error:
        raise SuiteError(f"cannot read it: {error}", where=str(file)) from None
    rows = []
    for number, line in enumerate(content.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)  # the releases hold Infinity and long integers
        except ValueError as error:
            raise SuiteError(f"not JSON: {error}", where=f"{file}:{number}") from None
        if not isinstance(row, dict):
            raise SuiteError("a line must be a JSON object", where=f"{file}:{number}")
        rows.append(row)
    if not rows:
        raise SuiteError("the file holds no line", where=str(file))
    return rows


def field(row: dict[str, Any], names: Sequence[str], where: str) -> Any:
    """Return the first of a row's fields that is there.

    Raises:
        SuiteError: None is.
    """
    for name in names:
        if row.get(name) is not None:
            return row[name]
    raise SuiteError(
        f"a row has no {' or '.join(map(repr, names))}", where=where, hint="is it another suite?"
    )


def first(rows: list[Any], limit: int | None, suite: str) -> list[Any]:
    """Return the first `limit` rows, or all.

    Raises:
        SuiteError: The limit is below 1.
    """
    if limit is not None and limit < 1:
        raise SuiteError(f"limit {limit} is below 1", where=f"suite {suite}")
    return rows[:limit]
