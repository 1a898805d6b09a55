"""Every invariant attacked through the Python API: a named error before anything starts (I1-I7, I9, I11)."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from autosft.actions import ActionContext, BuildGuard, apply_recipe, build, load_build
from autosft.config import load_config
from autosft.errors import (
    AutosftError,
    BaseFingerprintError,
    BudgetError,
    CampaignError,
    ContaminationError,
    CorruptRecordError,
    FrozenSettingsError,
    HoldoutError,
    HypothesisError,
    LineageError,
    ProposalError,
)
from autosft.evals import holdout
from autosft.executor import base_fingerprint, execute
from autosft.memory import CampaignLock, Hypothesis
from autosft.meta import resume_campaign, run_campaign, views
from autosft.meta.campaign import Campaign, open_campaign
from autosft.meta.nodes import Nodes
from autosft.meta.submit import check_submission
from autosft.pool import Pool
from autosft.subagents import parse_reply
from autosft.types import ActionCall, Message, Recipe, Row
from tests.campaigns import TINY

pytestmark = pytest.mark.slow


@pytest.fixture
def campaign(campaign_copy: Path):
    with CampaignLock(campaign_copy):
        yield open_campaign(load_config([*TINY, "campaign.rounds=0"]), campaign_copy)


def _recipe(campaign: Campaign, *calls: ActionCall, **changes) -> Recipe:
    facts = campaign.facts
    recipe = Recipe(facts.pool, calls, facts.budget_tokens, campaign.config.pool.order, 0)
    return replace(recipe, **changes)


def _build(campaign: Campaign, recipe: Recipe, **changes):
    settings = {
        "benchmarks": campaign.benchmarks,
        "store": campaign.store,
        "train": campaign.config.trainer,
        "seeds": campaign.seeds,
        "guard": campaign.guard,
    }
    return build(recipe, campaign.pool, campaign.ctx, **{**settings, **changes})


def _hypothesis(recipe: Recipe, round_: int = 1) -> Hypothesis:
    criteria = {"metric": "score", "above_parent_by": 0.0}
    return Hypothesis(round_, recipe.fingerprint, "It helps.", {"title": 0.1}, 0.1, criteria, criteria)


def test_i1_changed_base_is_refused_before_training(campaign, tmp_path):
    stolen = tmp_path / "base"
    shutil.copytree(campaign.facts.base, stolen)
    weights = next(stolen.glob("*.safetensors"))
    content = bytearray(weights.read_bytes())
    content[-2] ^= 1
    weights.write_bytes(content)
    built = _build(campaign, _recipe(campaign))
    config = campaign.config
    with pytest.raises(BaseFingerprintError):
        execute(
            stolen, campaign.facts.base_fingerprint, built, campaign.items_path, (0,),
            config.trainer, config.generate, campaign.store,
        )  # fmt: skip
    hypothesis = _hypothesis(_recipe(campaign))
    campaign.hypotheses.register(hypothesis)
    moved = replace(campaign, facts=replace(campaign.facts, base=str(stolen)))
    with pytest.raises(BaseFingerprintError, match="round 1"):
        check_submission(moved, 1, hypothesis.recipe, built.fingerprint)
    assert campaign.journal.find("hypothesis.submitted", "1") is None


def test_i1_another_base_is_refused_on_restart(campaign_copy, tmp_path, round0):
    other = tmp_path / "base"
    shutil.copytree(views_base(round0), other)
    (other / "generation_config.json").write_text("{}")
    with (other / "config.json").open("r+") as stream:
        data = json.load(stream)
        data["rms_norm_eps"] = 1e-3
        stream.seek(0)
        json.dump(data, stream)
        stream.truncate()
    assert base_fingerprint(other) != views.status(campaign_copy)["base_fingerprint"]
    with pytest.raises(BaseFingerprintError, match="the campaign's base has"):
        run_campaign(load_config([*TINY, "campaign.rounds=0", f"model.path={other}"]), campaign_copy)


def views_base(out: Path) -> str:
    return json.loads((out / "campaign.json").read_text())["base"]


def test_i2_budget_passes_and_steps(campaign):
    with pytest.raises(BudgetError, match="the campaign trains 4000"):
        _build(campaign, _recipe(campaign, budget_tokens=8000))
    with pytest.raises(BudgetError, match="at most 10 are allowed"):
        few = campaign.pool.ids[:2]
        _build(campaign, _recipe(campaign, keep(campaign, few)))
    with pytest.raises(BudgetError):
        _build(campaign, _recipe(campaign), train=replace(campaign.config.trainer, batch_tokens=100))


def keep(campaign: Campaign, ids: list[str]) -> ActionCall:
    return ActionCall("prune/rows", {"ids": [i for i in campaign.pool.ids if i not in ids]})


def test_i2_a_forged_build_is_caught_by_its_arrays(campaign):
    built = _build(campaign, _recipe(campaign))
    small = BuildGuard(
        budget_tokens=2000, optimizer_steps=4, unique_tokens=campaign.facts.unique_tokens,
        encoder=campaign.facts.encoder, order=campaign.config.pool.order,
        benchmarks=campaign.facts.benchmarks,
    )  # fmt: skip
    forged = _build(campaign, _recipe(campaign, budget_tokens=2000), guard=small)
    campaign.guard.check(load_build(built))
    with pytest.raises(BudgetError):
        campaign.guard.check(load_build(forged))


@pytest.mark.parametrize(
    "override",
    [
        "trainer.lr=1e-3",
        "generate.temperature=0.5",
        "campaign.seeds=0,1,2",
        "campaign.alpha=0.2",
        "lab.seed=9",
    ],
)
def test_i3_settings_are_frozen_and_named(campaign_copy, override):
    key = override.split("=")[0]
    with pytest.raises(FrozenSettingsError, match=key):
        run_campaign(load_config([*TINY, "campaign.rounds=0", override]), campaign_copy)


def test_i3_operational_settings_may_change(campaign_copy):
    result = run_campaign(load_config([*TINY, "campaign.rounds=0", "executor.slots=1"]), campaign_copy)
    assert result["rounds"] == 1


def test_i4_no_run_without_a_submitted_hypothesis(campaign):
    nodes = Nodes(campaign, lambda event: None)
    recipe = _recipe(campaign)
    built = _build(campaign, recipe)
    with pytest.raises(HypothesisError, match="was not submitted"):
        nodes.run_seeds(1, recipe.fingerprint, built.fingerprint, (0,))
    with pytest.raises(HypothesisError, match="no hypothesis is registered"):
        check_submission(campaign, 1, recipe.fingerprint, built.fingerprint)
    campaign.hypotheses.register(_hypothesis(recipe))
    check_submission(campaign, 1, recipe.fingerprint, built.fingerprint)
    with pytest.raises(HypothesisError, match="cannot be edited"):
        campaign.hypotheses.register(replace(_hypothesis(recipe), predicted={"title": 0.9}))


def test_i4_an_edit_of_the_journal_is_noticed(campaign_copy):
    path = campaign_copy / "journal.jsonl"
    path.write_text(path.read_text().replace("Reference: the pool", "Reference: another pool", 1))
    with pytest.raises(CorruptRecordError, match=r"journal\.jsonl:2"):
        views.rounds(campaign_copy)


def test_i5_every_build_is_decontaminated_against_everything(campaign):
    with pytest.raises(ContaminationError):
        _build(campaign, _recipe(campaign), benchmarks=())
    with pytest.raises(ContaminationError):
        _build(campaign, _recipe(campaign), benchmarks=campaign.benchmarks[:1])


def test_i5_a_planted_leak_never_reaches_training(campaign):
    item = campaign.items[0]
    leak = Row("x", "web", (item.messages[-1], Message("assistant", "Here it is.")))
    pool = campaign.pool.append([leak])
    recipe = _recipe(campaign, pool=pool.fingerprint)
    built = load_build(build(
        recipe, pool, campaign.ctx, benchmarks=campaign.benchmarks, store=campaign.store,
        train=campaign.config.trainer, seeds=campaign.seeds, guard=campaign.guard,
    ))  # fmt: skip
    assert item.messages[-1].content in {row.prompt for row in pool.rows()}
    assert item.messages[-1].content not in {row.prompt for row in built.pool.rows()}


def test_i6_held_out_items_are_nowhere_in_the_campaign(round0):
    sealed = next((round0.parent / ".sealed" / "tiny").glob("twin-*"))
    items = [json.loads(line) for line in (sealed / holdout.ITEMS).read_text().splitlines()]
    texts = {item["messages"][-1]["content"].encode() for item in items}
    assert len(texts) > 10
    assert oct((sealed / holdout.ITEMS).stat().st_mode & 0o777) == "0o600"
    for path in round0.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert not any(text in content for text in texts), path
            assert b"held-out" not in content or path.suffix == ".log", path


def test_i6_sealed_suites_open_once_and_only_after_the_end(campaign_copy):
    sealed = next((campaign_copy.parent / ".sealed" / "tiny").glob("twin-*"))
    with pytest.raises(HoldoutError, match="has not ended"):
        holdout.open_sealed(sealed, campaign="c", checkpoint="k", finished=False)
    assert holdout.open_sealed(sealed, campaign="c", checkpoint="k", finished=True).items
    holdout.record_scored(sealed, campaign="c", checkpoint="k", summary={})
    with pytest.raises(HoldoutError, match="scored already"):
        holdout.open_sealed(sealed, campaign="c", checkpoint="k", finished=True)


def test_i7_made_rows_need_parents_and_verdicts(campaign):
    orphan = Row(
        "x", "s", (Message("user", "a"), Message("assistant", "b")), made_by="repair/x", method="edit"
    )
    pool = campaign.pool.append([orphan])
    with pytest.raises(LineageError, match="lacks parent"):
        build(
            _recipe(campaign, pool=pool.fingerprint), pool, campaign.ctx, benchmarks=campaign.benchmarks,
            store=campaign.store, train=campaign.config.trainer, seeds=campaign.seeds, guard=campaign.guard,
        )  # fmt: skip


def test_i9_a_device_cap_stops_the_campaign_before_the_run(tmp_path):
    result = run_campaign(load_config([*TINY, "spend.device_hours=0.0001"]), tmp_path / "capped")
    assert result["rounds"] == 0
    assert "device_s cap" in result["stop"]
    assert views.rounds(tmp_path / "capped") == []


@pytest.mark.parametrize(
    "reply",
    [
        {"analyst": "a", "claim": "c", "actions": [{"kind": "os/system", "params": {}}], "predicted": {}},
        {"analyst": "a", "claim": "c", "actions": [{"kind": "prune/../../x", "params": {}}], "predicted": {}},
        {"analyst": "a", "claim": "c", "actions": [], "predicted": {}},
        {"analyst": "a", "claim": "c", "actions": [{"kind": "prune/verifier", "code": "x"}], "predicted": {}},
        {
            "analyst": "a", "claim": "c", "predicted": {},
            "actions": [{"kind": "prune/verifier", "params": {"checks": "rm"}}],
        },
        {"analyst": "a", "claim": "c", "actions": "prune everything", "predicted": {}},
        {"analyst": "a", "claim": "c", "actions": [{"kind": "order/shuffle"}], "predicted": {"title": 7}},
        {"analyst": "a", "claim": "c", "actions": [{"kind": "order/shuffle"}] * 4, "predicted": {}},
        {"analyst": "a", "claim": "", "actions": [{"kind": "order/shuffle"}], "predicted": {}},
        {"analyst": "a", "reason": "x", "hypothesis": "edit"},
        {},
    ],
)  # fmt: skip
def test_i11_proposals_come_from_the_closed_catalogue(reply):
    with pytest.raises(ProposalError):
        parse_reply(reply)


def test_unusable_inputs_are_named(tmp_path, round0):
    for overrides, words in (
        (["model.path=" + str(tmp_path)], "config.json"),
        (["pool.path=" + str(tmp_path)], ""),
    ):
        with pytest.raises(AutosftError) as caught:
            run_campaign(load_config([*TINY, *overrides]), tmp_path / "out")
        assert words in str(caught.value)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("mine")
    with pytest.raises(CampaignError, match="holds other files"):
        run_campaign(load_config([*TINY]), tmp_path / "full")
    assert (tmp_path / "full" / "thesis.tex").read_text() == "mine"
    with pytest.raises(CampaignError, match="no campaign here"):
        resume_campaign(tmp_path / "full")


def test_actions_of_another_pool_are_refused(campaign):
    other = Pool.from_rows(campaign.pool.rows()[:10])
    with pytest.raises(AutosftError, match="the recipe is for pool"):
        apply_recipe(_recipe(campaign), other, ActionContext(0, campaign.encoder))
