"""The suite and its held-out twin."""

from __future__ import annotations

from collections import Counter

import pytest

from autosft.errors import SuiteError
from autosft.evals.suites import load_suite
from autosft.lab.phrasing import LEAVES, REQUESTS
from autosft.lab.tasks import requests


def test_every_leaf_has_its_prompts_and_half_are_held_wordings() -> None:
    suite = load_suite("lab", seed=1, prompts_per_leaf=20)
    assert Counter(item.leaf for item in suite.items) == dict.fromkeys(LEAVES, 20)
    assert Counter((i.leaf, i.tags["phrasing"]) for i in suite.items) == {
        (leaf, kind): 10 for leaf in LEAVES for kind in ("seen", "held")
    }
    assert suite.name == "lab"
    assert all(
        {r.id for r in item.requirements} >= {"lab:fact"} and len(item.requirements) == 2
        for item in suite.items
    )


def test_twin_shares_neither_prompts_nor_requests() -> None:
    dev, held = load_suite("lab", seed=0), load_suite("lab", seed=0, split="held_out")
    assert held.name != dev.name
    assert not set(dev.reference_texts()) & set(held.reference_texts())
    asked = {t: {REQUESTS[a][n].format(e=e) for a, n, e in requests(t)} for t in ("train", "dev", "held_out")}
    for suite, own in ((dev, "dev"), (held, "held_out")):
        for item in suite.items:
            prompt = item.messages[-1].content
            assert any(prompt.startswith(request) for request in asked[own])
            assert not any(prompt.startswith(r) for other in asked if other != own for r in asked[other])


def test_more_prompts_keep_the_first_ones_and_seeds_differ() -> None:
    few, many = load_suite("lab", prompts_per_leaf=5), load_suite("lab", prompts_per_leaf=9)
    wanted = {item.id: item for item in many.items}
    assert all(wanted[item.id] == item for item in few.items)
    assert load_suite("lab").fingerprint == load_suite("lab").fingerprint
    assert load_suite("lab", seed=3).fingerprint != load_suite("lab").fingerprint


@pytest.mark.parametrize(
    "settings", [{"prompts_per_leaf": 0}, {"prompts_per_leaf": 10_000}, {"split": "test"}, {"colour": 1}]
)
def test_bad_settings_are_named(settings: dict[str, object]) -> None:
    with pytest.raises(SuiteError, match="lab"):
        load_suite("lab", **settings)


def test_the_largest_suite_can_be_drawn() -> None:
    from autosft.lab.items import MAX_PROMPTS_PER_LEAF

    for split in ("dev", "held_out"):
        assert (
            len(load_suite("lab", prompts_per_leaf=MAX_PROMPTS_PER_LEAF, split=split))
            == 17 * MAX_PROMPTS_PER_LEAF
        )
