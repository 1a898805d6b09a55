from __future__ import annotations

import importlib.util
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


@pytest.fixture(scope="session")
def language_data(shared: Path) -> None:
    """Packages and NLTK data that some requirements need, as the shared folder holds them."""
    for package in ("langdetect", "nltk", "if_verifiable", "emoji", "syllapy"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    data = shared / "data/nltk_data"
    if not data.is_dir():
        pytest.skip(f"no {data}")
    os.environ["NLTK_DATA"] = str(data)
    from autosft.taxonomy.verifiers.nltk_text import nltk

    if str(data) not in nltk().data.path:
        nltk().data.path.insert(0, str(data))
