"""Views of a real campaign: the promised names, and figures that agree with one another."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autosft.errors import CampaignError
from autosft.meta import views
from tests.campaigns import run_cli

pytestmark = pytest.mark.slow

ROUND_KEYS = {
    "round", "score", "ci_low", "ci_high", "n_seeds", "verdict", "incumbent", "claimed_best", "families",
    "train_tokens", "optimizer_steps", "base_fingerprint", "hypothesis_id", "build_fingerprint", "checkpoint",
}  # fmt: skip
LEAF_KEYS = {
    "leaf", "path", "score", "ci_low", "ci_high", "n", "delta_best", "supply_rows", "supply_tokens",
    "targeted_rounds",
}  # fmt: skip


def test_rounds_and_leaves_have_the_promised_names(round0):
    (first,) = views.rounds(round0)
    assert set(first) >= ROUND_KEYS
    assert first["ci_low"] <= first["score"] <= first["ci_high"]
    assert (first["n_seeds"], first["train_tokens"], first["optimizer_steps"]) == (2, 4000, 8)
    assert first["incumbent"] is True and first["claimed_best"] is True
    leaves = views.taxonomy(round0)
    assert len(leaves) >= 16 and all(set(leaf) >= LEAF_KEYS for leaf in leaves)
    assert len({leaf["path"].split("/")[0] for leaf in leaves}) >= 5
    mean = sum(leaf["score"] for leaf in leaves) / len(leaves)
    assert mean == pytest.approx(first["score"])
    assert views.actions(round0) == []


def test_the_checkpoint_loads_with_transformers(round0):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = Path(views.rounds(round0)[0]["checkpoint"])
    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    end = tokenizer.convert_tokens_to_ids("<|end|>")
    assert model.generation_config.eos_token_id in (end, [end])
    assert tokenizer.chat_template


def test_reading_commands_print_json_and_write_nothing(round0):
    before = {path: path.stat().st_mtime_ns for path in round0.rglob("*")}
    for command in ("status", "rounds", "taxonomy", "actions", "hypotheses", "lineage"):
        found = run_cli(command, str(round0), "--json")
        assert found.returncode == 0, found.stderr
        json.loads(found.stdout)
    assert {path: path.stat().st_mtime_ns for path in round0.rglob("*")} == before


def test_what_is_not_there_is_said(round0, tmp_path):
    with pytest.raises(CampaignError, match="round 7 has no scores"):
        views.taxonomy(round0, 7)
    with pytest.raises(CampaignError, match="no campaign here"):
        views.rounds(tmp_path)
    found = run_cli("status", str(tmp_path / "nowhere"))
    assert found.returncode == 2 and "no campaign folder" in found.stderr and "Traceback" not in found.stderr
