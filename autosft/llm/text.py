"""Text of any origin as agents are shown it: bounded, without control characters, always inside JSON strings.

A model reads rows, answers and logs as data. They are embedded as JSON, so a quote or a brace in them closes
nothing, and what some chat templates would read as the start of a turn is broken apart.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

import orjson

MOST_CHARS = 600
_SEQUENCES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x9b[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?")
# Special tokens of common chat templates: <|im_start|>, <s>, [INST], <<SYS>>, <start_of_turn>.
_MARKERS = re.compile(
    r"<\|+|\|+>|</?s>|\[/?INST\]|<</?SYS>>|</?(?:start|end)_of_turn>|</?tool_(?:call|response)>"
)


def shown(text: str, most: int = MOST_CHARS) -> str:
    """Return a text that is harmless to display and at most about `most` characters long."""
    left_out = len(text) - most
    if left_out > 40:
        head = most * 3 // 4
        text = f"{text[:head]} ...[{left_out:,} characters left out]... {text[len(text) - (most - head) :]}"
    text = _SEQUENCES.sub("", text)
    text = _MARKERS.sub(lambda found: " ".join(found.group()), text)
    return "".join(_safe(char) for char in text)


def _safe(char: str) -> str:
    if char in "\n\t":
        return char
    category = unicodedata.category(char)
    if category == "Cs":
        return "\ufffd"
    return "" if category in ("Cc", "Cf") else char


def as_json(data: Any) -> str:
    """Return plain data as compact JSON; floats are rounded to four places."""
    return orjson.dumps(_rounded(data), option=orjson.OPT_NON_STR_KEYS).decode()


def _rounded(data: Any) -> Any:
    if isinstance(data, float):
        return round(data, 4)
    if isinstance(data, dict):
        return {str(key): _rounded(value) for key, value in data.items()}
    return [_rounded(value) for value in data] if isinstance(data, (list, tuple)) else data


def table(rows: list[dict[str, Any]]) -> str:
    """Return rows as tab-separated lines under one header line: far fewer tokens than repeated keys."""
    if not rows:
        return "(none)"
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = ["\t".join(names)]
    for row in rows:
        cells = [row.get(name, "") for name in names]
        lines.append("\t".join(f"{c:.4g}" if isinstance(c, float) else _cell(c) for c in cells))
    return "\n".join(lines)


def _cell(value: Any) -> str:
    return shown(str(value), 300).replace("\t", " ").replace("\n", " ")
