"""A sweep varies one switch at a time, is verified equal, continues, and says what it found."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import pairwise

import pytest

from autosft.config import load_config
from autosft.errors import CampaignError, ConfigError, FrozenSettingsError
from autosft.meta.ablate import check_equal, read_plan, run_sweep
from autosft.meta.campaign import read_facts
from autosft.meta.decide import _outside
from autosft.meta.designs import cell_name, plan, variants
from autosft.meta.views_sweep import sweep_report
from autosft.report import sweep_markdown, write_sweep
from autosft.subagents.analyst import within
from autosft.types import FAMILIES
from tests.campaigns import TINY

SHORT = (*TINY, "campaign.rounds=1", "campaign.claim_seeds=0")


def test_each_variant_differs_in_its_switch_alone():
    config = load_config()
    additive = list(variants("additive", config).values())
    switched = [
        [name for name in ("executor", "analysis", "synthesis", "revision") if getattr(v.components, name)]
        for v in additive
    ]
    assert [len(on) for on in switched] == [0, 1, 2, 3, 4]
    assert all(set(a) < set(b) for a, b in pairwise(switched))
    without = variants("leave-one-out", config)
    assert not without["-analysis"].components.analysis and without["-analysis"].components.revision
    families = variants("families", config)
    assert len(families) == 1 + 2 * len(FAMILIES)
    assert families["only-mix"].campaign.families == ("mix",)
    assert "mix" not in families["without-mix"].campaign.families
    with pytest.raises(ConfigError, match="no sweep named"):
        variants("other", config)


def test_a_campaign_seed_moves_policy_lab_and_training_seeds(tmp_path):
    one, two = plan(load_config(), "additive", [0, 3], tmp_path, ["base"])
    assert two.config.policy.seed == two.config.lab.seed == 3
    assert not set(one.config.campaign.seeds) & set(two.config.campaign.seeds)
    assert not one.config.holdout.enabled  # a drawn twin would differ between variants
    assert cell_name("+revision", 2) == "plus-revision-s2" and cell_name("-analysis", 0) == "no-analysis-s0"


@pytest.mark.parametrize(
    ("seeds", "only", "words"), [([], (), "--seeds"), ([1, 1], (), "--seeds"), ([0], ("x",), "no variant")]
)
def test_a_bad_plan_is_refused(tmp_path, seeds, only, words):
    with pytest.raises(ConfigError, match=re.escape(words)):
        plan(load_config(), "additive", seeds, tmp_path, only)


def test_a_campaign_with_another_trainer_is_refused(tmp_path):
    cells = plan(load_config(), "additive", [0, 1], tmp_path)
    check_equal(cells, "additive")
    other = replace(cells[3].config, trainer=replace(cells[3].config.trainer, lr=1e-3))
    cells[3] = replace(cells[3], config=other)
    with pytest.raises(FrozenSettingsError, match=r"trainer.lr"):
        check_equal(cells, "additive")


def test_a_folder_that_holds_something_else_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("x")
    cells = plan(load_config(), "additive", [0], tmp_path)
    with pytest.raises(CampaignError, match="no sweep"):
        run_sweep(cells, "additive", tmp_path)
    with pytest.raises(CampaignError, match="no sweep here"):
        read_plan(tmp_path)


def test_left_out_families_are_named_and_trimmed():
    assert _outside(["mix", None, "order"], ("order",)) == "mix, which campaign.families leaves out"
    assert _outside(["mix", None], None) == _outside([None, "mix"], ("mix",)) == ""
    both = {"actions": [{"kind": "mix/temperature"}, {"kind": "order/length"}]}
    assert within(both, ("order",)) == {"actions": [{"kind": "order/length"}]}
    assert within(both, ("repair",)) is None and within(both, None) is both


@pytest.mark.parametrize("value", ["mixx", "[]"])
def test_families_must_be_known(value):
    with pytest.raises(ConfigError, match=r"campaign\.families"):
        load_config([f"campaign.families={value}"])


@pytest.mark.slow
def test_a_sweep_runs_continues_and_reports(tmp_path):
    config, out = load_config(SHORT), tmp_path / "sweep"
    cells = plan(config, "families", [0], out, ["only-mix"])
    assert run_sweep(cells, "families", out, jobs=1) == {"only-mix-s0": ""}
    journal = (out / "only-mix-s0" / "journal.jsonl").read_bytes()
    again = plan(config, "families", [0], out, ["only-mix", "only-order"])
    assert set(run_sweep(again, "families", out, jobs=2).values()) == {""}
    assert (out / "only-mix-s0" / "journal.jsonl").read_bytes() == journal
    view = sweep_report(out)
    assert [row["variant"] for row in view["variants"]] == ["only-mix", "only-order"]
    for row in view["campaigns"]:
        assert set(row["family_share"]) <= {row["variant"].removeprefix("only-")}
    (pair,) = view["pairs"]
    assert pair["campaign_seeds"] == 1 and pair["verdict"] in ("better", "worse", "not distinguishable")
    paths = write_sweep(view, out)
    assert json.loads(paths[2].read_text())["kind"] == "families"
    assert "only-order" in sweep_markdown(view) and "://" not in paths[3].read_text()
    with pytest.raises(FrozenSettingsError, match="lr"):
        run_sweep(
            plan(load_config([*SHORT, "trainer.lr=1e-3"]), "families", [0], out, ["only-mix"]),
            "families",
            out,
        )
    with pytest.raises(CampaignError, match="kind families"):
        run_sweep(plan(config, "additive", [0], out, ["base"]), "additive", out)


def test_sources_are_compared_alone_and_left_out_at_equal_tokens(tmp_path):
    with pytest.raises(ConfigError, match="equal tokens"):
        variants("sources", load_config())
    config = load_config(["campaign.budget_tokens=3000", "lab.rows=200"])
    found = variants("sources", config)
    names = sorted(n.removeprefix("only-") for n in found if n.startswith("only-"))
    assert len(names) > 2 and len(found) == 1 + 2 * len(names)
    for name in names:
        assert found[f"only-{name}"].pool.sources == (name,)
        assert set(found[f"without-{name}"].pool.sources) == set(names) - {name}
    assert {v.campaign.rounds for v in found.values()} == {0}
    with pytest.raises(ConfigError, match="nothing to compare"):
        variants("sources", load_config(["campaign.budget_tokens=3000", f"pool={one_source(tmp_path)}"]))


def one_source(folder):
    path = folder / "rows.jsonl"
    path.write_text('{"prompt": "Say hi", "response": "hi", "source": "web"}\n')
    return path


def test_folders_of_sources_are_safe_and_apart():
    names = {cell_name(f"only-{source}", 0) for source in ("a/b", "a b", "../x", "web")}
    assert len(names) == 4 and "only-web-s0" in names
    assert all("/" not in name and " " not in name for name in names)


@pytest.mark.slow
def test_a_sweep_of_sources(tmp_path):
    config = load_config([*TINY, "campaign.budget_tokens=3000", "campaign.seeds=0"])
    every = plan(config, "sources", [0], tmp_path / "s")
    some = [cell.variant for cell in every if cell.variant == "all" or "only-" in cell.variant][:3]
    cells = plan(config, "sources", [0], tmp_path / "s", some)
    assert not any(run_sweep(cells, "sources", tmp_path / "s").values())
    view = sweep_report(tmp_path / "s")
    assert [row["variant"] for row in view["variants"]] == some
    assert {pair["against"] for pair in view["pairs"]} == {"all"} and len(view["pairs"]) == 2
    facts = [read_facts(cell.folder) for cell in cells]
    assert len({f.pool for f in facts}) == 3 and {f.budget_tokens for f in facts} == {3000}
    assert "sources" in sweep_markdown(view)
