"""Evaluation tasks of the lab: requests nobody trained on, half of them in unseen wordings."""

from __future__ import annotations

import random
from typing import Literal

from autosft.errors import SuiteError
from autosft.lab.phrasing import LEAVES
from autosft.lab.tasks import Task, draw_task
from autosft.types import EvalItem, Message

EvalSplit = Literal["dev", "held_out"]
MAX_PROMPTS_PER_LEAF = 200
SUITE_NAMES = {"dev": "lab", "held_out": "lab-held-out"}


def evaluation_tasks(seed: int, prompts_per_leaf: int, split: EvalSplit) -> list[tuple[str, Task]]:
    """Return (item id, task) in order: leaf by leaf, seen and held wordings in turn, no prompt twice.

    The first prompts of a leaf do not depend on how many are asked for.

    Args:
        seed: Draws requests, wordings and arguments.
        prompts_per_leaf: How many prompts each leaf gets.
        split: Whose requests to use; the two splits share none.

    Raises:
        SuiteError: The split is unknown, or the world has not that many prompts.
    """
    if split not in SUITE_NAMES:
        raise SuiteError(f"no split {split!r}", where="suite lab", hint="use dev or held_out")
    if not 1 <= prompts_per_leaf <= MAX_PROMPTS_PER_LEAF:
        what = f"cannot draw {prompts_per_leaf} prompts a leaf"
        raise SuiteError(what, where="suite lab", hint=f"use 1 to {MAX_PROMPTS_PER_LEAF}")
    found: list[tuple[str, Task]] = []
    for leaf in LEAVES:
        rng = random.Random(f"lab-suite-{split}-{seed}-{leaf}")
        prompts: set[str] = set()
        while len(prompts) < prompts_per_leaf:
            held = len(prompts) % 2 == 1
            task = draw_task(leaf, rng, split=split, held_wording=held)
            if task.prompt not in prompts:
                found.append((f"{split}-{leaf}-{len(prompts):03d}", task))
                prompts.add(task.prompt)
    return found


def evaluation_items(seed: int, prompts_per_leaf: int, split: EvalSplit) -> list[EvalItem]:
    """Return the tasks of `evaluation_tasks` as items; each must hold its form and state its fact."""
    return [
        EvalItem(
            id=item_id,
            suite=SUITE_NAMES[split],
            messages=(Message("user", task.prompt),),
            requirements=task.requirements(),
            leaf=str(task.leaf),
            tags={
                "phrasing": "held" if task.held_wording else "seen",
                "branch": LEAVES[str(task.leaf)].branch,
                "asked": task.attribute,
            },
        )
        for item_id, task in evaluation_tasks(seed, prompts_per_leaf, split)
    ]
