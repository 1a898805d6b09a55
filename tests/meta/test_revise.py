"""Each trigger of the revision node fires on its record, once; a fork keeps the better branch."""

from __future__ import annotations

from typing import Any

import pytest

from autosft.artifacts import ArtifactStore
from autosft.identity import fingerprint
from autosft.memory import Journal
from autosft.meta.history import History
from autosft.meta.revise import close_fork, find_trigger, open_fork, strategy_metrics
from autosft.types import Recipe


class Record:
    """A campaign's record, written round by round as the nodes write it."""

    def __init__(self, folder):
        self.store, self.journal = ArtifactStore(folder / "artifacts"), Journal(folder)
        self.scores: list[float | None] = []

    def add(self, score: float | None, *families: str, parent: int = 0, tokens: int = 1000) -> None:
        number = len(self.scores)
        base = self.scores[parent] if self.scores else None
        data: dict[str, Any] = {
            "status": "ok" if score is not None else "killed in seeds 0",
            "parent": None if number == 0 else parent,
            "recipe": Recipe("p", (), 100, seed=number).to_json(),
            "build": f"b{number}", "effect": f"e{number}", "score": score, "seeds": [],
            "families": dict.fromkeys(families, 1), "kinds": [], "analysts": [], "guards_broken": [],
            "delta_parent": None if score is None or base is None else score - base,
            "predicted": {}, "leaf_deltas": {}, "leaf_scores": {}, "unique_tokens": tokens,
        }  # fmt: skip
        key = fingerprint(data)
        with self.store.create("round", key) as step:
            step.data = data
        self.journal.append("round.recorded", str(number), {"record": key})
        claim = {"granted": number == 0, "attempted": False, "fresh": [], "score_all": None}
        self.journal.append("claim.decided", str(number), claim)
        self.scores.append(score)

    @property
    def history(self) -> History:
        return History(self.journal, self.store)


@pytest.fixture
def record(tmp_path):
    return Record(tmp_path)


def _fired(record: Record) -> str | None:
    trigger = find_trigger(record.history)
    return trigger.name if trigger else None


def test_plateau(record):
    record.add(0.3)
    record.add(0.29, "mix")
    assert _fired(record) is None
    record.add(0.29, "prune")
    assert _fired(record) == "plateau"


def test_family_collapse(record):
    for n in range(4):
        record.add(0.3 + 0.01 * n, *(["mix"] if n else []), parent=max(0, n - 1))
    assert _fired(record) == "family collapse"


def test_pool_shrink_starts_from_the_last_round_that_was_large(record):
    record.add(0.3, tokens=1000)
    record.add(0.4, "prune", tokens=900)
    record.add(0.5, "prune", "mix", parent=1, tokens=400)
    trigger = find_trigger(record.history)
    assert trigger is not None and (trigger.name, trigger.parent) == ("pool shrink", 1)


def test_abort_criterion(record):
    record.add(0.3)
    record.add(0.2, "order")
    assert _fired(record) == "abort criterion"


def test_nothing_fires_on_steady_progress(record):
    for n, family in enumerate(["", "mix", "prune", "repair"]):
        record.add(0.3 + 0.1 * n, *([family] if family else []), parent=max(0, n - 1))
    assert _fired(record) is None


def test_a_fork_gives_both_branches_the_same_parent_and_keeps_the_better(record):
    record.add(0.3)
    record.add(0.29, "mix")
    record.add(0.29, "mix")
    assert open_fork(record.journal, record.history, last_round=9) is not None
    assert open_fork(record.journal, record.history, last_round=9) is None, "one fork at a time"
    assert [record.history.parent_for(n).round for n in (3, 4)] == [0, 0]
    record.add(0.31, "mix")
    assert close_fork(record.journal, record.history) == ""
    record.add(0.36, "repair")
    assert close_fork(record.journal, record.history) == "revision: rival kept, gap of the rival +0.050"
    assert close_fork(record.journal, record.history) == ""
    assert record.history.incumbent.round == 4
    metrics = strategy_metrics(record.history)
    assert (metrics["forks"], metrics["adopted"]) == (1, 1)
    assert metrics["mean_gap"] == pytest.approx(0.05)
    assert (metrics["switches"], metrics["switch_rate"]) == (1, pytest.approx(1 / 3))


def test_a_fork_needs_two_rounds(record):
    record.add(0.3)
    record.add(0.29, "mix")
    record.add(0.29, "mix")
    assert open_fork(record.journal, record.history, last_round=3) is None


def test_a_trigger_fires_once_for_a_parent(record):
    record.add(0.3)
    record.add(0.29, "mix")
    record.add(0.29, "mix")
    open_fork(record.journal, record.history, last_round=9)
    record.add(0.28, "mix")
    record.add(0.28, "repair")
    close_fork(record.journal, record.history)
    assert _fired(record) is None


def test_an_invalidated_round_and_its_descendants_do_not_count(record):
    record.add(0.3)
    record.add(0.5, "prune")
    record.add(0.6, "mix", parent=1)
    record.add(0.4, "repair")
    record.journal.append("round.invalidated", "1", {"reason": "leak"})
    history = record.history
    assert history.incumbent.round == 3
    assert history.invalidated == {1: "leak", 2: "descends from round 1, which was invalidated"}


def test_a_fork_dies_with_its_parent(record):
    record.add(0.2)
    record.add(0.4, "prune")
    record.add(0.3, "mix", parent=1)
    record.add(0.3, "order", parent=1)
    assert open_fork(record.journal, record.history, last_round=9) is not None
    assert record.history.parent_for(4).round == 1
    record.journal.append("round.invalidated", "1", {"reason": "leak"})
    assert record.history.open_fork is None
    assert record.history.parent_for(4).round == 0
