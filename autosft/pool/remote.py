"""Rows on object stores: `s3://`, `gs://`, `abfs://`, `https://`, `memory://` and whatever else fsspec knows.

Files are brought here one at a time into a temporary folder, read, and removed, so that no more than one
lies here. Credentials are those of the file system's own configuration; none is read, stored or printed.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from autosft.errors import PoolError

SCHEME = "://"
#: Called with one line for people after each file.
Say = Callable[[str], None]
_TRIES = 3


def is_url(path: Path | str) -> bool:
    """Whether a path names a file system by its scheme."""
    return isinstance(path, str) and SCHEME in path


def files_at(url: str, suffixes: Sequence[str]) -> Iterator[tuple[str, int, Path | PoolError]]:
    """Bring the files of rows at a URL here, one after another.

    Args:
        url: A file or a folder.
        suffixes: What files of rows end with.

    Yields:
        (URL of the file, number of files, local copy or why there is none); a copy is gone when the next one
        is asked for.

    Raises:
        PoolError: The file system is unknown or cannot be listed, or nothing to read is there.
    """
    system, names = _listed(url, suffixes)
    with tempfile.TemporaryDirectory(prefix="autosft-rows-") as folder:
        for name in names:
            local = Path(folder) / PurePosixPath(name).name
            scheme = url.split(SCHEME, maxsplit=1)[0]
            shown = name if SCHEME in name else f"{scheme}{SCHEME}{name.lstrip('/')}"
            yield shown, len(names), _bring(system, name, local) or local
            local.unlink(missing_ok=True)


def _listed(url: str, suffixes: Sequence[str]) -> tuple[Any, list[str]]:
    import fsspec

    try:
        system, root = fsspec.core.url_to_fs(url)
    except (ValueError, ImportError) as error:
        raise PoolError(
            f"no file system for it: {error}", where=url, hint="s3:// needs the package s3fs, gs:// gcsfs"
        ) from None
    try:
        found = [root] if system.isfile(root) else system.find(root)
    except Exception as error:
        # Every file system has errors of its own for refused access, missing buckets and lost connections.
        raise PoolError(
            f"cannot be listed: {_line(error)}", where=url, hint="check name and credentials"
        ) from None
    names = sorted(name for name in found if str(name).endswith(tuple(suffixes)))
    if not names:
        raise PoolError("no file of rows there", where=url, hint=f"known: {', '.join(suffixes)}")
    return system, names


def _bring(system: Any, name: str, local: Path) -> PoolError | None:
    for attempt in range(1, _TRIES + 1):
        try:
            system.get_file(name, str(local))
        except Exception as error:
            # As above; a lost connection is worth another try.
            if attempt == _TRIES:
                return PoolError(f"cannot be read after {_TRIES} tries: {_line(error)}", where=name)
            time.sleep(0.2 * 2**attempt)
        else:
            break
    return None


class Progress:
    """Says after each file how far reading is, how fast, and how long the rest may take.

    Args:
        n_files: Files to read, or None where that is not known beforehand.
        say: Gets a line, at most one a second.
    """

    def __init__(self, n_files: int | None, say: Say | None) -> None:
        self._n, self._say = n_files, say
        self._began = self._said = time.monotonic()
        self._files = self._rows = 0

    def file_read(self, n_rows: int) -> None:
        """Note a file that was read."""
        self._files += 1
        self._rows += n_rows
        now = time.monotonic()
        if self._say is None or now - self._said < 1.0:
            return
        self._said = now
        spent = now - self._began
        text = f"{self._rows:,} rows from {self._files} files, {self._rows / spent:,.0f} rows/s"
        if self._n is not None:
            text += f", {spent / self._files * (self._n - self._files):.0f} s left"
        self._say(text)


def _line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]
