"""The lab's suite: 17 leaves in five branches over requests that no training row holds."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Literal

from autosft.evals.suites.suite import Suite
from autosft.types import EvalItem


def load(seed: int = 0, prompts_per_leaf: int = 60, split: Literal["dev", "held_out"] = "dev") -> Suite:
    """Draw the suite.

    Half of each leaf's prompts word the requirement as training rows do (`phrasing: seen`), half as they
    never do (`held`); requests and argument words are held out for all of them. A strict pass needs the form
    and the fact.

    Args:
        seed: Draws requests, wordings and arguments.
        prompts_per_leaf: Prompts a leaf; the first ones do not depend on how many there are.
        split: `dev`, or `held_out`: the twin, whose requests are disjoint from dev's.

    Raises:
        SuiteError: The split is unknown or the number of prompts is out of range.
    """
    # The lab stands above evals and uses it; its items are looked up by name so that imports point downward.
    items: Callable[[int, int, str], list[EvalItem]] = importlib.import_module(
        "autosft.lab.items"
    ).evaluation_items
    drawn = items(seed, prompts_per_leaf, split)
    return Suite(drawn[0].suite, tuple(drawn))
