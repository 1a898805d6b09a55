"""Views of hypotheses, lineage, differences and the report: what they say of hand-made campaigns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autosft.errors import CampaignError
from autosft.meta.views_diff import diff
from autosft.meta.views_memory import hypotheses, lineage
from autosft.meta.views_report import campaign_report
from tests.report.records import Made, Writer, row


def test_hypotheses_hold_predicted_against_measured(everything: Path) -> None:
    found = hypotheses(everything)
    assert [h["round"] for h in found] == list(range(8))
    assert [h["state"] for h in found[:5]] == ["supported", "supported", "abandoned", "supported", "refuted"]
    first = found[1]
    assert first["predicted_score"] == 0.2 and first["actual_score"] > 0.2
    assert first["ci_low"] < first["actual_score"] < first["ci_high"] and first["mde"] > 0
    assert {leaf["leaf"]: leaf["predicted"] for leaf in first["leaves"]} == dict.fromkeys(
        ("json", "lowercase", "no_comma", "title"), 0.2
    )
    assert all(leaf["actual"] is not None and leaf["verdict"] for leaf in first["leaves"])
    refused = found[2]
    assert "12 passes" in refused["why"] and refused["actual_score"] is None
    assert all(leaf["actual"] is None for leaf in refused["leaves"])
    assert found[3]["invalidated"].startswith("the program was wrong") and found[4]["invalidated"]


def test_a_round_under_way_is_submitted_not_resolved(flat: Path) -> None:
    last = hypotheses(flat)[-1]
    assert last["state"] == "submitted" and last["parent"] is None and last["actual_score"] is None
    assert [r["round"] for r in lineage(flat)] == [0, 1]


def test_lineage_names_parents_arms_and_what_does_not_count(everything: Path) -> None:
    tree = {r["round"]: r for r in lineage(everything)}
    assert tree[1]["children"] == [2, 3, 5, 6] and tree[4]["depth"] == 3
    assert tree[3]["invalidated_by_operator"] and not tree[4]["invalidated_by_operator"]
    assert "descends from round 3" in tree[4]["invalidated"] and tree[5]["invalidated"] is None
    assert (tree[5]["arm"], tree[5]["kept"]) == ("continuation", False)
    assert (tree[6]["arm"], tree[6]["kept"], tree[6]["gap"]) == ("rival", True, 0.2)
    assert tree[7]["parent_chosen"] and tree[7]["parent"] == 5 and not tree[6]["parent_chosen"]
    assert [n for n, r in tree.items() if r["incumbent"]] == [6]
    assert [n for n, r in tree.items() if r["claimed_best"]] == [1]
    assert set(tree[1]["checkpoints"]) == {"0", "1", "2", "1000000", "1000001"} and not tree[2]["checkpoints"]


def test_diff_matches_rows_by_where_they_come_from(tmp_path: Path) -> None:
    made = Writer(tmp_path / "made")
    base = [row(f"prompt {i}", f"answer {i}") for i in range(6)]
    edited = row("prompt 0", "ANSWER 0", parent=base[0].id, made_by="repair/x", method="edit")
    again = row("prompt 1", "an edit of an edit", parent="gone", made_by="repair/x", method="edit")
    fresh = row("new prompt", "new answer", made_by="synthesize/x", method="new")
    heavy = row("prompt 3", "answer 3", weight=2.0)
    made.add(Made(0.3, parent=None, rows=tuple(base)))
    made.add(Made(0.5, 0, rows=(edited, again, base[2], heavy, fresh)))
    folder = made.stop()
    found = diff(folder, 0, 1)
    counts = {k: found["rows"][k] for k in ("a", "b", "added", "removed", "changed", "kept", "reweighted")}
    assert counts == {"a": 6, "b": 5, "added": 1, "removed": 2, "changed": 2, "kept": 2, "reweighted": 1}
    pairs = [(s["response_a"], s["response_b"]) for s in found["samples"]["changed"]]
    assert pairs == [("answer 0", "ANSWER 0"), ("answer 1", "an edit of an edit")]
    assert [s["prompt"] for s in found["samples"]["removed"]] == ["prompt 4", "prompt 5"]
    assert [s["response"] for s in found["samples"]["added"]] == ["new answer"]
    assert [c["kind"] for c in found["recipe"]["added"]] == ["prune/verifier"]
    back = diff(folder, 1, 0, samples=0)
    assert (back["rows"]["added"], back["rows"]["removed"], back["rows"]["changed"]) == (2, 1, 2)
    assert back["recipe"]["dropped"] and not back["samples"]["changed"]
    same = diff(folder, 1, 1)
    assert same["rows"]["kept"] == 5 and not same["rows"]["changed"] and not same["recipe"]["added"]


def test_diff_names_the_rounds_it_could_compare(everything: Path) -> None:
    for a, b, bad in ((0, 2, 2), (99, 1, 99)):
        with pytest.raises(CampaignError, match=rf"round {bad} has no training set.*0, 1, 3"):
            diff(everything, a, b)


def test_the_report_is_computed_from_records(everything: Path) -> None:
    view = campaign_report(everything)
    json.dumps(view, allow_nan=False)
    assert view["missing"] == []
    gain = view["gain"]
    assert gain["round"] == 1 and gain["claimed"] and gain["fresh_seeds"] and gain["verdict"] == "better"
    assert [c["round"] for c in view["claims"]] == [1, 6] and view["bias"]["remeasured"]["n"] == 2
    gap = sum(c["first_seeds_score"] - c["fresh_score"] for c in view["claims"]) / 2
    assert view["bias"]["remeasured"]["bias"] == pytest.approx(gap)
    # Seven recipes with three seeds give 14 degrees of freedom, two claims with two seeds 2 more.
    assert view["noise"]["df"] == 16 and view["noise"]["half_width"] > 1.96 * view["noise"]["sd"] / 3**0.5
    assert view["strategy"]["forks"] == 1 and view["strategy"]["adopted"] == 1
    assert [p["round"] for p in view["pool"]] == [0, 1, 3, 4, 5, 6, 7]
    assert view["provenance"]["rounds"][1]["record"] == f"round/{1:024d}"


def test_a_lost_score_artifact_is_said_and_the_rest_is_shown(tmp_path: Path) -> None:
    made = Writer(tmp_path / "made")
    made.add(Made(0.3, parent=None))
    made.add(Made(0.6, 0))
    (tmp_path / "made/artifacts/score/0001-0/items.parquet").unlink()
    view = campaign_report(made.stop())
    assert view["gain"] is None and view["noise"] is None
    assert "comparisons over single items" in view["missing"][0] and "items.parquet" in view["missing"][0]
    assert [r["round"] for r in view["rounds"]] == [0, 1]


def test_a_campaign_without_a_round_has_a_report(tmp_path: Path) -> None:
    made = Writer(tmp_path / "made")
    made.add(Made(0.3, parent=None, open=True))
    view = campaign_report(made.folder)
    assert view["rounds"] == [] and view["gain"] is None and view["pool"] == []
