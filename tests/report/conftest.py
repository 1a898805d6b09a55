"""Campaigns written by hand, for every shape a report must show."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.report.records import HOSTILE, Made, Writer, branched


@pytest.fixture(scope="session")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Claims, a refusal, a revision, an invalidated branch, a chosen parent."""
    return branched(tmp_path_factory.mktemp("made") / "made")


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with markup, scripts and control characters wherever a row, a model or a person writes."""
    return branched(tmp_path_factory.mktemp("hostile") / "made", text=HOSTILE, name=HOSTILE[:60])


@pytest.fixture(scope="session")
def flat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign in which nothing helped, whose third round is under way."""
    made = Writer(tmp_path_factory.mktemp("flat") / "made")
    made.add(Made(0.5, parent=None))
    made.add(Made(0.5, 0))
    made.add(Made(0.5, 0, open=True))
    return made.folder
