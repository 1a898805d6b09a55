"""The Python code in a response."""

from __future__ import annotations

import ast
import re

_FENCE = re.compile(r"^[ \t]*```[ \t]*([\w+-]*)[ \t]*\r?\n(.*?)(?:^[ \t]*```|\Z)", re.MULTILINE | re.DOTALL)
_LANGUAGES = ("", "python", "py", "python3")
MAX_CHARS = 200_000


def code_of(response: str, entry_point: str = "", head: str = "") -> str | None:
    """Return the code of a response, or None where no text of it is Python that defines `entry_point`.

    Candidates, the first that fits is taken: fenced blocks from the last to the first, all of them together,
    the whole response. Each is tried alone, after `head` (imports the prompt gave), and as its continuation.

    Args:
        response: Any text.
        entry_point: Name that must be defined at the top level; '' accepts any code.
        head: Source that the response may rely on or continue.
    """
    if len(response) > MAX_CHARS:
        return None
    blocks = [body for language, body in _FENCE.findall(response) if language.lower() in _LANGUAGES]
    candidates = [*reversed(blocks), "\n".join(blocks), response] if blocks else [response]
    for text in candidates:
        # A definition of its own, with the imports that the prompt gave, wins over a continuation.
        for code in (f"{head}\n{text}", text, head + text) if head else (text,):
            if entry_point in (names := _defined(code)) or (not entry_point and names is not _BROKEN):
                return code
    return None


_BROKEN: frozenset[str] = frozenset({"\0"})


def _defined(code: str) -> frozenset[str]:
    """Names a module defines at its top level; `_BROKEN` where it is no Python."""
    try:
        body = ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _BROKEN
    names = set()
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
    return frozenset(names)
