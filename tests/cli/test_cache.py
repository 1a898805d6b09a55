"""Campaigns share what they encoded; `autosft cache` shows it and cleans it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.campaigns import command, run_cli


@pytest.mark.slow
def test_campaigns_share_encoded_rows_and_the_cache_can_be_cleaned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTOSFT_CACHE", str(tmp_path / "shared"))
    settings = ("campaign.rounds=0", "holdout=none")
    assert run_cli(*command(tmp_path / "a", *settings)[3:]).returncode == 0
    before = json.loads(run_cli("cache", "--json").stdout)
    assert before["bytes"] > 0 and not (tmp_path / "a" / "cache").exists()
    assert run_cli(*command(tmp_path / "b", *settings)[3:]).returncode == 0
    after = json.loads(run_cli("cache", "--json").stdout)
    assert after["encoders"] == before["encoders"], "the second campaign found every row"
    assert run_cli("cache", "--keep-gb", "1").returncode == 0
    cleaned = json.loads(run_cli("cache", "--clean", "--json").stdout)
    assert cleaned["removed_bytes"] == before["bytes"] and cleaned["bytes"] == 0
    own = (*settings, "executor.shared_cache=false")
    assert run_cli(*command(tmp_path / "c", *own)[3:]).returncode == 0
    assert (tmp_path / "c" / "cache").is_dir() and json.loads(run_cli("cache", "--json").stdout)["bytes"] == 0
