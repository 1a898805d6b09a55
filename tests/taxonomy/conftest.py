from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of shared data: `$AUTOSFT_SHARED`, or `../shared` beside the repository."""
    root = Path(__file__).resolve().parents[2]
    folder = Path(os.environ.get("AUTOSFT_SHARED", root.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"no shared data at {folder}; set AUTOSFT_SHARED")
    return folder
