"""A leaf's history, the flag of leaves that supply cannot teach, and histograms side by side."""

from __future__ import annotations

import pytest

from autosft.artifacts import ArtifactStore
from autosft.errors import CampaignError
from autosft.identity import fingerprint
from autosft.memory import Journal
from autosft.meta import views
from autosft.meta.history import History
from autosft.types import Recipe


def _history(folder, verdicts, *, supply=5, invalid=()):
    """Rounds that each aim at the leaf `json`, with these verdicts."""
    store, journal = ArtifactStore(folder / "artifacts"), Journal(folder)
    for number, verdict in enumerate(verdicts):
        data = {
            "status": "ok", "parent": None if number == 0 else 0, "recipe": Recipe("p", (), 9).to_json(),
            "build": "b", "effect": "e", "score": 0.5, "seeds": [], "guards_broken": [],
            "predicted": {"json": 0.2} if number else {}, "kinds": ["mix/temperature"] if number else [],
            "leaves": {"json": {"score": 0.1 * number, "supply_rows": supply}},
            "leaf_verdicts": {"json": verdict} if verdict else {}, "number": number,
        }  # fmt: skip
        key = fingerprint(data)
        with store.create("round", key) as step:
            step.data = data
        journal.append("round.recorded", str(number), {"record": key})
    for number in invalid:
        journal.append("round.invalidated", str(number), {"reason": "wrong"})
    return History(journal, store)


NO = "not distinguishable"


@pytest.mark.parametrize(
    ("verdicts", "options", "flagged"),
    [
        ((None, NO, NO, NO), {}, True),
        ((None, NO, NO), {}, False),
        ((None, NO, "better", NO, NO), {}, False),
        ((None, NO, NO, NO), {"supply": 0}, False),
        ((None, NO, NO, NO), {"invalid": (2,)}, False),
    ],
)
def test_a_leaf_is_flagged_after_three_supplied_rounds_without_movement(tmp_path, verdicts, options, flagged):
    assert ("json" in views.taught_in_vain(_history(tmp_path, verdicts, **options))) is flagged


def test_the_batch_that_moved_a_leaf_is_named(tmp_path, monkeypatch):
    history = _history(tmp_path, (None, NO, "better"))
    monkeypatch.setattr(views, "read_facts", lambda out: None)
    monkeypatch.setattr(views, "_open", lambda out: ([], history))
    rows = views.leaf_history(tmp_path, "json")
    assert [row["batch"] for row in rows] == [[], [], ["mix/temperature"]]
    assert [row["targeted"] for row in rows] == [False, True, True]
    assert rows[2]["parent_score"] == 0.0
    with pytest.raises(CampaignError, match="known: json"):
        views.leaf_history(tmp_path, "jsonn")


def test_campaigns_of_different_length_stand_side_by_side(tmp_path, monkeypatch):
    known = {"a": [{"round": 0, "families": {}}, {"round": 1, "families": {"mix": 2}}], "b": []}
    monkeypatch.setattr(views, "rounds", lambda out: known[out.name])
    rows = views.histogram([tmp_path / "a", tmp_path / "b"])
    assert rows == [{"round": 1, "families": {"0": {"mix": 2}, "1": None}}]
