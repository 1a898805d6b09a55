"""One real, tiny campaign of round 0, shared by the tests that only look at it or attack it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.campaigns import TINY


@pytest.fixture(scope="session")
def round0(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a finished campaign of round 0 only."""
    from autosft.config import load_config
    from autosft.meta import run_campaign

    out = tmp_path_factory.mktemp("round0") / "tiny"
    run_campaign(load_config([*TINY, "campaign.rounds=0"]), out)
    return out


@pytest.fixture
def campaign_copy(round0: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage, with its sealed folder beside it."""
    shutil.copytree(round0.parent / ".sealed", tmp_path / ".sealed")
    return Path(shutil.copytree(round0, tmp_path / "tiny"))
