"""The held-out suite of a real campaign: scored once, after the end, and never a dev suite beside it."""

from __future__ import annotations

import json
from pathlib import Path

import orjson
import pytest

from autosft.config import load_config
from autosft.errors import HoldoutError
from autosft.meta import run_campaign
from autosft.meta.holdout import score_holdout
from autosft.meta.sealed import HOLDOUT, sealed_folder
from tests.campaigns import TINY


def kinds(out: Path) -> list[str]:
    return [json.loads(line)["kind"] for line in (out / "journal.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_one_scoring_ends_a_campaign(campaign_copy: Path) -> None:
    summary = score_holdout(campaign_copy)
    assert summary["claimed_best"] == 0 and summary["n_items"] > 0
    assert summary["difference"] == "round 0 is the claimed best"
    assert kinds(campaign_copy)[-1] == "holdout.scored"
    assert "score" not in (campaign_copy / "journal.jsonl").read_text().splitlines()[-1].split("claimed")[1]
    with pytest.raises(HoldoutError, match="scored already"):
        score_holdout(campaign_copy)
    with pytest.raises(HoldoutError, match="which ended the campaign"):
        run_campaign(load_config([*TINY, "campaign.rounds=1"]), campaign_copy)
    assert kinds(campaign_copy)[-2:] == ["holdout.refused", "holdout.refused"]


@pytest.mark.slow
def test_a_suite_that_shares_prompts_with_the_sealed_one_is_refused_when_a_campaign_starts(
    campaign_copy: Path, tmp_path: Path
) -> None:
    sealed = next(sealed_folder(campaign_copy).glob("twin-*")) / "items.jsonl"
    items = [json.loads(line) for line in sealed.read_text().splitlines()]
    stolen = tmp_path / "stolen.jsonl"
    lines = [
        {"id": f"mine-{i}", "messages": item["messages"], "requirements": [{"id": "lab:lowercase"}]}
        for i, item in enumerate(items[:3])
    ]
    stolen.write_bytes(b"\n".join(map(orjson.dumps, lines)))
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    (fresh / HOLDOUT).write_bytes((campaign_copy / HOLDOUT).read_bytes())
    config = load_config([*TINY, "campaign.rounds=0", f"suite={stolen}"])
    with pytest.raises(HoldoutError, match="shares 3 prompts") as refusal:
        run_campaign(config, fresh)
    assert items[0]["messages"][0]["content"] not in str(refusal.value)
