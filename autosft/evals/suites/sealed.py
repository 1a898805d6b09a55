"""Sealed folders, as far as loaders of suites must know them."""

from __future__ import annotations

from pathlib import Path

from autosft.errors import HoldoutError

ITEMS, SEAL = "items.jsonl", "seal.json"


def refuse_sealed(path: Path) -> None:
    """Refuse to read a file of a sealed folder as if it were any other.

    Raises:
        HoldoutError: A seal lies beside the file, or the path is a sealed folder.
    """
    resolved = Path(path).resolve()
    for folder in (resolved, resolved.parent):
        if (folder / SEAL).exists() and (folder / ITEMS).exists():
            raise HoldoutError(
                "this suite is sealed", where=str(path), hint="`autosft holdout score` opens it, once"
            )
