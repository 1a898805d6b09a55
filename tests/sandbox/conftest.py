from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Outputs of references are computed anew, not taken from the user's cache."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("AUTOSFT_CACHE", str(folder))
    return folder
