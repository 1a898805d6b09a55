"""What a campaign freezes: a change that alters results shows, one that does not is free."""

from __future__ import annotations

from pathlib import Path

import pytest

from autosft.config import (
    campaign_settings,
    changed_settings,
    frozen_settings,
    load_config,
    settings_fingerprint,
)
from autosft.config.frozen import FROZEN_GROUPS, OPERATIONAL, OPERATIONAL_GROUPS, PATHS, flatten
from autosft.config.values import known_keys


@pytest.mark.parametrize(
    "override",
    [
        "trainer.lr=1e-3",
        "generate.max_new_tokens=32",
        "campaign.guard_margin=0.1",
        "campaign.seeds=0,1",
        "campaign.budget_tokens=1000",
        "campaign.alpha=0.1",
        "lab.prompts_per_leaf=20",
        "lab.seed=1",
    ],
)
def test_settings_that_decide_results_are_frozen(override: str) -> None:
    before, after = frozen_settings(load_config()), frozen_settings(load_config([override]))
    assert settings_fingerprint(before) != settings_fingerprint(after)
    (line,) = changed_settings(before, after)
    assert line.startswith(override.split("=", maxsplit=1)[0])


@pytest.mark.parametrize(
    "override",
    ["campaign.rounds=9", "campaign.name=other", "executor.slots=1", "spend.usd=5", "trainer.timeout_s=9"],
)
def test_settings_that_only_run_it_are_free(override: str) -> None:
    assert campaign_settings(load_config()) == campaign_settings(load_config([override]))


def test_policy_and_components_belong_to_the_campaign_but_not_to_the_frozen_evaluation() -> None:
    before, after = load_config(), load_config(["components=base"])
    assert frozen_settings(before) == frozen_settings(after)
    assert campaign_settings(before) != campaign_settings(after)


def test_the_place_of_a_model_does_not_matter(tmp_path: Path) -> None:
    places = [tmp_path / name for name in ("a", "b")]
    for place in places:
        place.mkdir()
    one, two = (campaign_settings(load_config([f"model.path={place}"])) for place in places)
    assert settings_fingerprint(one) == settings_fingerprint(two)


def test_every_setting_is_either_decisive_or_listed_as_not() -> None:
    # Only the policy `llm` reads the settings of language models.
    decisive = set(campaign_settings(load_config(["policy=llm"])))
    others = {key for key in decisive if key.split(".")[0] != "llm"}
    assert set(campaign_settings(load_config())) == others
    free = {
        key for key in known_keys() if key in OPERATIONAL | PATHS or key.split(".")[0] in OPERATIONAL_GROUPS
    }
    assert decisive | free == set(known_keys()) and not decisive & free
    assert set(FROZEN_GROUPS) <= {key.split(".")[0] for key in decisive}
    assert set(known_keys()) >= OPERATIONAL | PATHS


def test_changes_are_said_in_words() -> None:
    before = flatten({"a": {"b": 1, "c": None}, "d": [1]})
    after = flatten({"a": {"b": 2, "e": True}, "d": [1]})
    assert changed_settings(before, after) == [
        "a.b was 1, is now 2",
        "a.c was null, is now not set",
        "a.e was not set, is now true",
    ]
