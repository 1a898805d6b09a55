"""Tasks: every leaf can be answered rightly for every request, and is not answered by accident."""

from __future__ import annotations

import random

import pytest

from autosft.lab.phrasing import LEAVES, REQUESTS
from autosft.lab.tasks import draw_task, requests, task_for
from autosft.lab.world import ENTITIES, HELD_OUT_WORDS
from autosft.taxonomy import Taxonomy, verify


def test_splits_cover_every_request_once() -> None:
    train, dev, held = (set(requests(split)) for split in ("train", "dev", "held_out"))
    assert not train & dev and not train & held and not dev & held
    assert len(train | dev | held) == len(ENTITIES) * sum(len(t) for t in REQUESTS.values())
    assert min(len(dev), len(held)) > 150


@pytest.mark.parametrize("leaf", [None, *LEAVES])
def test_right_answers_pass_on_every_request(leaf: str | None) -> None:
    rng = random.Random(f"test-{leaf}")
    for split in ("train", "dev", "held_out"):
        for attribute, template, entity in requests(split):
            task = task_for(attribute, template, entity, leaf, rng, held_words=split != "train")
            response = task.answer(rng)
            failed = [r for r in task.requirements() if not verify(r, task.prompt, response)]
            assert not failed, f"{task.prompt!r} -> {response!r} fails {failed}"


@pytest.mark.parametrize("leaf", LEAVES)
def test_ignoring_the_requirement_seldom_passes(leaf: str) -> None:
    rng = random.Random(0)
    passed = 0
    for _ in range(200):
        task = draw_task(leaf, rng)
        passed += verify(task.requirements()[0], task.prompt, task.ignoring_answer(rng))
    assert passed <= 60


def test_leaves_are_the_shipped_tree() -> None:
    tree = Taxonomy.load("lab")
    assert {leaf.name: (leaf.branch, leaf.verifier) for leaf in tree.leaves} == {
        leaf.name: (leaf.branch, leaf.requirement) for leaf in LEAVES.values()
    }
    assert len(LEAVES) >= 16
    assert len({leaf.branch for leaf in LEAVES.values()}) >= 5
    rng = random.Random(1)
    for name in LEAVES:
        assert tree.leaf_of(draw_task(name, rng).requirements()) == name


def test_seen_and_held_wordings_differ_and_training_tasks_keep_to_theirs() -> None:
    for leaf in LEAVES.values():
        assert not set(leaf.seen) & set(leaf.held)
        assert len(leaf.seen) >= 3 and len(leaf.held) >= 2
    rng = random.Random(2)
    for leaf in ("keyword", "start_word", "end_phrase"):
        for _ in range(200):
            words = (
                draw_task(leaf, rng)
                .prompt.lower()
                .replace('"', " ")
                .replace(".", " ")
                .replace(":", " ")
                .split()
            )
            assert not set(words) & set(HELD_OUT_WORDS)
