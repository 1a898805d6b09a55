"""Progress lines: a worker appends them, its starter tails them. They are never evidence and never synced."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import orjson


class ProgressWriter:
    """Appends one JSON object a line."""

    def __init__(self, path: Path) -> None:
        self._stream: BinaryIO = path.open("ab", buffering=0)

    def write(self, line: Mapping[str, Any]) -> None:
        """Append a line at once."""
        self._stream.write(
            orjson.dumps(dict(line), option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_SERIALIZE_NUMPY)
        )

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


class ProgressReader:
    """Returns lines as they become complete; a half-written or unreadable line is passed over."""

    def __init__(self, path: Path) -> None:
        self._path, self._offset = path, 0

    def new_lines(self) -> list[dict[str, Any]]:
        """Return the lines written since the last call."""
        try:
            with self._path.open("rb") as stream:
                stream.seek(self._offset)
                chunk = stream.read()
        except FileNotFoundError:
            return []
        end = chunk.rfind(b"\n") + 1
        self._offset += end
        lines: list[dict[str, Any]] = []
        for raw in chunk[:end].splitlines():
            try:
                line = orjson.loads(raw)
            except orjson.JSONDecodeError:
                continue
            if isinstance(line, dict):
                lines.append(line)
        return lines
