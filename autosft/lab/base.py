"""The shipped base model: where it lies, and that it is the one that was shipped."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from autosft.errors import BaseModelError
from autosft.identity import hash_file

ASSET_DIR = Path(__file__).parent / "assets" / "base"
CHECKSUMS = "SHA256SUMS"


def write_checksums(folder: Path) -> None:
    """Write `SHA256SUMS` over a folder's files, in the format `sha256sum -c` reads."""
    names = sorted(p.name for p in folder.iterdir() if p.is_file() and p.name != CHECKSUMS)
    (folder / CHECKSUMS).write_text("".join(f"{hash_file(folder / name)}  {name}\n" for name in names))


def check_base(folder: Path) -> None:
    """Compare a folder with its checksums.

    Raises:
        BaseModelError: A file or the list is missing, a file differs, or a file is not on the list.
    """
    hint = "reinstall autosft, or rebuild the base with scripts/build_lab.py"
    try:
        lines = (folder / CHECKSUMS).read_text().splitlines()
    except OSError:
        raise BaseModelError(f"no {CHECKSUMS}", where=str(folder), hint=hint) from None
    expected = {name: sha for sha, _, name in (line.partition("  ") for line in lines)}
    present = {p.name for p in folder.iterdir() if p.is_file()} - {CHECKSUMS}
    for name in sorted(expected.keys() | present):
        if name not in present:
            raise BaseModelError("file is missing", where=str(folder / name), hint=hint)
        if name not in expected:
            raise BaseModelError(f"file is not listed in {CHECKSUMS}", where=str(folder / name), hint=hint)
        if hash_file(folder / name) != expected[name]:
            raise BaseModelError("file differs from the one shipped", where=str(folder / name), hint=hint)


@cache
def base_dir() -> Path:
    """Return the folder of the lab's base model, checked against its checksums once a process.

    Raises:
        BaseModelError: The folder is not the one that was shipped.
    """
    check_base(ASSET_DIR)
    return ASSET_DIR
