"""What leaves a campaign: MLflow runs, and an exported checkpoint with its cards."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from autosft.errors import CampaignError
from autosft.meta.export import export_checkpoint
from autosft.meta.track import STATE, track
from autosft.report.cards import write_cards
from tests.campaigns import command, run_cli

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One tiny campaign of two rounds, tracked while it ran."""
    out = tmp_path_factory.mktemp("share") / "tiny"
    done = run_cli(*command(out, "tracking=mlflow")[3:])
    assert done.returncode == 0, done.stderr
    return out


def runs_of(out: Path) -> list[Any]:
    from mlflow.tracking import MlflowClient

    client = MlflowClient(f"sqlite:///{out.parent / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("tiny")
    return list(client.search_runs([experiment.experiment_id], max_results=1000))


def test_rounds_and_seeds_are_nested_with_params_and_curves(finished: Path) -> None:
    runs = {run.data.tags["autosft.key"]: run for run in runs_of(finished)}
    top = runs["campaign"]
    assert {"round 0", "round 1", "round 2", "round 0 seed 0", "round 2 seed 1"} <= set(runs)
    assert runs["round 1"].data.tags["mlflow.parentRunId"] == top.info.run_id
    assert runs["round 1 seed 0"].data.tags["mlflow.parentRunId"] == runs["round 1"].info.run_id
    assert top.data.params["campaign.rounds" if "campaign.rounds" in top.data.params else "trainer.lr"]
    assert top.info.status == "FINISHED" and top.data.tags["stop"]
    record = json.loads(run_cli("rounds", str(finished), "--json").stdout)[1]
    assert runs["round 1"].data.metrics["score"] == pytest.approx(record["score"])
    assert runs["round 1"].inputs.dataset_inputs[0].dataset.digest == record["build_fingerprint"]
    curve = runs["round 1 seed 0"].data.metrics
    assert curve["loss"] > 0 and any(key.startswith("loss/") for key in curve)
    assert any(key.startswith("leaf/") for key in runs["round 1"].data.metrics)


def test_nothing_is_sent_twice_and_what_was_lost_is_caught_up(finished: Path, tmp_path: Path) -> None:
    before = len(runs_of(finished))
    assert track(finished)["sent"] == 0 and len(runs_of(finished)) == before
    other = f"sqlite:///{tmp_path / 'other.db'}"
    copy = tmp_path / "tiny"
    shutil.copytree(finished, copy)
    assert track(copy, other)["sent"] == before
    state = json.loads((copy / STATE).read_text())
    assert state["uri"] == other and len(state["runs"]) == before


def test_a_broken_tracker_stops_nothing_and_is_named(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    out = tmp_path / "tiny"
    settings = ("campaign.rounds=0", "tracking.backend=mlflow", "tracking.uri=http://127.0.0.1:9")
    done = run_cli(*command(out, *settings)[3:])
    assert done.returncode == 0, done.stderr
    assert "not everything was tracked" in done.stdout + done.stderr
    assert "127.0.0.1:9" in (out / "logs" / "tracking.log").read_text()
    shown = run_cli("track", str(out), "--uri", "http://127.0.0.1:9")
    assert shown.returncode == 2 and "the tracker failed" in shown.stderr and "Traceback" not in shown.stderr
    assert run_cli("track", str(out)).returncode == 0, "caught up by another store"


def test_an_exported_checkpoint_loads_and_answers_as_in_the_campaign(finished: Path, tmp_path: Path) -> None:
    view = export_checkpoint(finished, tmp_path / "model", number=1)
    write_cards(view, tmp_path / "model")
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(str(tmp_path / "model"))
    tokenizer = AutoTokenizer.from_pretrained(str(tmp_path / "model"))
    assert model.config.vocab_size >= len(tokenizer) - 1 and view["seed"] == 0
    card = (tmp_path / "model" / "README.md").read_text()
    assert view["report"]["facts"]["base_fingerprint"] in card
    assert ("**Claim.**" in card) == view["claimed"]
    data = (tmp_path / "model" / "DATA_CARD.md").read_text()
    assert f"{view['build']['rows']:,} rows" in data
    assert all(source["source"] in data for source in view["sources"])
    assert json.loads((tmp_path / "model" / "recipe.json").read_text())["pool"] == view["recipe"]["pool"]


def test_exports_are_refused_where_they_could_do_harm(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("keep")
    with pytest.raises(CampaignError, match="not an empty folder"):
        export_checkpoint(finished, tmp_path / "full")
    assert (tmp_path / "full" / "mine.txt").read_text() == "keep"
    with pytest.raises(CampaignError, match="no round 99"):
        export_checkpoint(finished, tmp_path / "x", number=99)
    with pytest.raises(CampaignError, match="seed 12345"):
        export_checkpoint(finished, tmp_path / "x", number=0, seed=12345)
    assert not (tmp_path / "x").exists()


def test_foreign_text_is_inert_in_the_cards(finished: Path, tmp_path: Path) -> None:
    view = export_checkpoint(finished, tmp_path / "model", number=0)
    evil = "| x <script>alert(1)</script>\n# Title ` \x1b[31m"
    view["sources"][0]["source"] = evil
    view["report"]["status"]["campaign"] = evil
    for card in write_cards(view, tmp_path / "model"):
        text = card.read_text()
        assert "<script>" not in text and "\n# Title" not in text and "\x1b" not in text
