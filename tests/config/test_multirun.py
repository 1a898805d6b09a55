from __future__ import annotations

import pytest

from autosft.config import load_config
from autosft.config.multirun import expand
from autosft.errors import ConfigError


def test_every_combination_is_a_campaign_with_a_folder_of_its_own():
    found = expand(["lab.seed=range(0,2)", "campaign.seeds=[0,1]", "components=base,all"])
    assert [settings for _, settings in found] == [
        ["lab.seed=0", "campaign.seeds=[0,1]", "components=base"],
        ["lab.seed=0", "campaign.seeds=[0,1]", "components=all"],
        ["lab.seed=1", "campaign.seeds=[0,1]", "components=base"],
        ["lab.seed=1", "campaign.seeds=[0,1]", "components=all"],
    ]
    names = [name for name, _ in found]
    assert names[0] == "0-lab.seed=0,components=base" and len(set(names)) == 4
    assert all("/" not in name for name in names)
    configs = [load_config(settings) for _, settings in found]
    assert [(c.lab.seed, c.components.analysis, c.campaign.seeds) for c in configs] == [
        (0, False, (0, 1)), (0, True, (0, 1)), (1, False, (0, 1)), (1, True, (0, 1)),
    ]  # fmt: skip


def test_paths_that_hydra_cannot_read_stay_as_they_are(tmp_path):
    path = tmp_path / "a b"
    assert expand([f"model={path}", "lab.seed=1,2"])[0][1] == [f"model={path}", "lab.seed=1"]


@pytest.mark.parametrize(
    ("overrides", "words"), [(["lab.seed=1"], "several values"), (["lab.seed=range("], "not a sweep")]
)
def test_what_is_no_sweep_is_told(overrides, words):
    with pytest.raises(ConfigError, match=words):
        expand(overrides)
