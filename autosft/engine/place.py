"""Where caches lie: one folder for all campaigns of a person, or a campaign's own."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "AUTOSFT_CACHE"


def cache_folder() -> Path:
    """Return the folder that campaigns share: `AUTOSFT_CACHE`, or `autosft` in the user's cache folder."""
    given = os.environ.get(VARIABLE)
    if given:
        return Path(given).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        home = Path(base) if base else Path.home() / ".cache"
    except RuntimeError:  # no home at all
        home = Path(".cache")
    return home / "autosft"
