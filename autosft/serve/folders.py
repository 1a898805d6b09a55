"""Which campaigns a folder holds, by a name that is safe in an address."""

from __future__ import annotations

import re
from pathlib import Path

from autosft.errors import CampaignError
from autosft.meta.campaign import CAMPAIGN

_DEPTH = 2
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,120}")


def campaigns(root: Path) -> dict[str, Path]:
    """Return name -> campaign folder: the root itself, or those up to two levels below it.

    Raises:
        CampaignError: There is none.
    """
    root = root.expanduser().absolute()
    if (root / CAMPAIGN).is_file():
        return {_name(root.name): root}
    found: dict[str, Path] = {}
    for depth in range(1, _DEPTH + 1):
        for file in sorted(root.glob("/".join(["*"] * depth) + f"/{CAMPAIGN}")):
            name = _name("-".join(file.parent.relative_to(root).parts))
            found.setdefault(name, file.parent)
    if not found:
        raise CampaignError(
            "no campaign here", where=str(root), hint="start one with `autosft run --out DIR`"
        )
    return found


def _name(text: str) -> str:
    cleaned = re.sub(r"[^A-Za-z0-9._-]", "_", text).lstrip("._-") or "campaign"
    match = _SAFE.match(cleaned)
    return match.group() if match else "campaign"
