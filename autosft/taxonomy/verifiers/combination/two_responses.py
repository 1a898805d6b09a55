"""Two different answers, separated by six asterisks."""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example

EXAMPLE = Example("It is red.\n******\nIt is small.", "It is red.\n******\nIt is red.")


def check(prompt: str, response: str) -> bool:
    """Return whether two parts hold text and differ; only the first and the last part may be blank."""
    parts = [part.strip() for part in response.split("******")]
    if not all(parts[1:-1]):
        return False
    filled = [part for part in parts if part]
    return len(filled) == 2 and filled[0] != filled[1]
