"""Arms: names are checked, and mending the planted defects pays, measured by real training."""

from __future__ import annotations

from pathlib import Path

import pytest

from autosft.errors import ConfigError
from autosft.lab.arms import ArmSettings, families_of, measure_arms
from autosft.types import FAMILIES


def test_arm_names() -> None:
    assert families_of("untouched") == ()
    assert families_of("oracle") == FAMILIES
    assert families_of("repair+prune") == ("prune", "repair")
    with pytest.raises(ConfigError, match="polish"):
        families_of("prune+polish")


def test_an_unknown_arm_is_refused_before_anything_is_trained(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="polish"):
        measure_arms(tmp_path / "arms", arms=("polish",))
    assert not (tmp_path / "arms").exists()


@pytest.mark.slow
def test_mending_all_defects_pays_at_equal_budget(tmp_path: Path) -> None:
    settings = ArmSettings(lab_seed=1, seeds=(0,), prompts_per_leaf=20)
    untouched, oracle = measure_arms(tmp_path, settings, arms=("oracle",))
    assert oracle.score.score - untouched.score.score >= 0.15
    assert oracle.train_tokens == pytest.approx(untouched.train_tokens, abs=128)
    assert oracle.unique_tokens != untouched.unique_tokens
    again = measure_arms(tmp_path, settings, arms=("oracle",))
    # An estimate of one seed has no standard error, and NaN differs from itself.
    assert [r.score.score for r in again] == [untouched.score.score, oracle.score.score]
