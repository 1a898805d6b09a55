"""The response holds a title in double angular brackets, such as <<The Fox>>."""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example

EXAMPLE = Example("<<The Fox>>\nIt is red.", "The Fox\nIt is red.")


def check(prompt: str, response: str) -> bool:
    """Return whether some line has text between its first '<<' and its last '>>'."""
    for line in response.split("\n"):
        start, end = line.find("<<"), line.rfind(">>")
        if start >= 0 and end >= start + 3 and line[start : end + 2].lstrip("<").rstrip(">").strip():
            return True
    return False
