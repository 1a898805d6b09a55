from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from autosft.errors import TaxonomyError, VerifierError
from autosft.pool import Pool
from autosft.taxonomy import VERIFIERS, Leaf, Taxonomy, assign, leaves_of_rows, row_verdicts, supply
from autosft.types import Message, Requirement, Row

LEAF: dict[str, Any] = {
    "verifier": "lab:lowercase",
    "description": "Lower-case.",
    "passes": "red fox",
    "fails": "Red fox",
}


def tree_file(folder: Path, leaves: dict[str, Any], **more: Any) -> Path:
    path = folder / "tree.yaml"
    path.write_text(yaml.safe_dump({"name": "mine", "version": 1, "leaves": leaves, **more}))
    return path


def a_row(prompt: str, response: str, *requirements: Requirement, **more: Any) -> Row:
    messages = (Message("user", prompt), Message("assistant", response))
    return Row("", more.pop("source", "s"), messages, tuple(requirements), **more)


def test_shipped_trees_load() -> None:
    lab, default = Taxonomy.load("lab"), Taxonomy.load("default")
    assert len(lab.leaves) == 17 and len({leaf.branch for leaf in lab.leaves}) == 5
    assert set(lab.names) < set(default.names)
    assert len({leaf.verifier for leaf in default.leaves}) == len(default.leaves)


def test_the_ifeval_tree_has_a_leaf_for_every_ifeval_requirement(language_data: None) -> None:
    ifeval = Taxonomy.load("ifeval")
    verifiers = {leaf.verifier for leaf in ifeval.leaves}
    assert len(verifiers) == len(ifeval.leaves) == 25
    assert verifiers <= set(VERIFIERS)


def test_a_tree_round_trips_and_its_fingerprint_knows_the_order() -> None:
    lab = Taxonomy.load("lab")
    again = Taxonomy.from_json(json.loads(json.dumps(lab.to_json())))
    assert again == lab and again.fingerprint == lab.fingerprint
    assert replace(lab, leaves=lab.leaves[::-1]).fingerprint != lab.fingerprint


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"passes": "Red"}, "passing example fails"),
        ({"fails": "red"}, "failing example passes"),
        ({"verifier": "lab:lowercas"}, "lab:lowercase"),
        ({"params": {"n": 1}}, "unknown argument 'n'"),
        ({"verifier": "lab:exact_words"}, "'n' is missing"),
        ({"passes": None}, "'passes' is missing"),
        ({"colour": "red"}, "unknown field 'colour'"),
        ({"pinned": ["n"]}, "pinned argument 'n'"),
        ({"params": [1]}, "params is a mapping"),
    ],
)
def test_a_leaf_that_cannot_be_decided_is_refused_by_name(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(TaxonomyError, match=message) as caught:
        Taxonomy.load(tree_file(tmp_path, {"case/low": {**LEAF, **change}}))
    assert "case/low" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("leaves: [1]", "needs name, version and leaves"),
        ("just text", "needs name, version and leaves"),
        ("a: [", "not YAML"),
        ("name: x\nleaves: {}", "no leaf"),
        ("name: x\nversion: zero\nleaves: {a: {}}", "leaf a"),
    ],
)
def test_an_unusable_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "tree.yaml"
    path.write_text(text)
    with pytest.raises(TaxonomyError, match=message):
        Taxonomy.load(path)


def test_missing_files_and_twin_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TaxonomyError, match=r"shipped trees: .*lab"):
        Taxonomy.load("labb")
    with pytest.raises(TaxonomyError, match="two leaves are named 'low'"):
        Taxonomy.load(tree_file(tmp_path, {"a/low": LEAF, "b/low": LEAF}))
    with pytest.raises(TaxonomyError, match="version"):
        Taxonomy.load(tree_file(tmp_path, {"a/low": LEAF}, version=0))


def test_a_composition_is_a_leaf_and_is_executed(tmp_path: Path) -> None:
    either = {"of": [{"id": "lab:lowercase"}, {"id": "lab:uppercase"}]}
    leaf = {**LEAF, "verifier": "compose:any", "params": either, "passes": "RED", "fails": "Red"}
    tree = Taxonomy.load(tree_file(tmp_path, {"case/even": leaf, "case/low": LEAF}))
    assert tree.leaf("even").ids() == {"lab:lowercase", "lab:uppercase"}
    assert tree.leaf_of([Requirement("compose:any", either)]) == "even"
    assert tree.leaf_of([Requirement("lab:lowercase")]) == "low"
    with pytest.raises(TaxonomyError, match="case/even"):
        Taxonomy.load(tree_file(tmp_path, {"case/even": {**leaf, "fails": "red"}}))


def test_revision_counts_versions_and_checks_new_leaves() -> None:
    lab = Taxonomy.load("lab")
    new = Leaf("case/shout", "lab:uppercase", "Shout.", "RED!", "red!")
    second = lab.revised(add=[new], remove=["uppercase"])
    assert (second.version, second.parent) == (2, lab.fingerprint)
    assert "uppercase" not in second and second.names[-1] == "shout" and "uppercase" in lab
    with pytest.raises(TaxonomyError, match="nothing"):
        lab.revised(remove=["nothing"])
    with pytest.raises(TaxonomyError, match="case/shout"):
        lab.revised(add=[replace(new, passes="red")])


def test_form_decides_the_leaf_before_content_and_pins_distinguish(tmp_path: Path) -> None:
    lab = Taxonomy.load("lab")
    fact = Requirement("lab:fact", {"entity": "fox", "attribute": "color"})
    assert lab.leaf_of([fact, Requirement("lab:exact_words", {"n": 9})]) == "exact_words"
    assert lab.leaf_of([fact]) is None and lab.leaf_of([]) is None
    assert lab.leaves_of([Requirement("lab:uppercase"), Requirement("lab:lowercase")]) == (
        "lowercase",
        "uppercase",
    )
    note = {
        "verifier": "detectable_content:postscript",
        "description": "A postscript.",
        "params": {"postscript_marker": "P.S."},
        "passes": "x\nP.S. y",
        "fails": "x",
    }
    tree = Taxonomy.load(
        tree_file(tmp_path, {"a/any_note": note, "a/ps_note": {**note, "pinned": ["postscript_marker"]}})
    )
    assert tree.leaf_of([Requirement(note["verifier"], {"postscript_marker": "P.S."})]) == "ps_note"
    assert tree.leaf_of([Requirement(note["verifier"], {"postscript_marker": "P.P.S"})]) == "any_note"


def test_supply_counts_rows_tokens_and_passing_rows() -> None:
    lab = Taxonomy.load("lab")
    low, words = Requirement("lab:lowercase"), Requirement("lab:exact_words", {"n": 2})
    right = Requirement("answer:number", {"answer": 4})
    pool = Pool.from_rows(
        [
            a_row("a", "red fox", low, words),
            a_row("b", "Red fox", low),
            a_row("c", "the answer is 5", low, right),
            a_row("d", "chat"),
        ]
    )
    found = supply(pool, lab, [10, 20, 30, 40], min_passing_rows=1)
    assert list(found) == list(lab.names)
    one = found["lowercase"]
    assert (one.rows, one.tokens, one.passing_rows, one.form_passing_rows) == (3, 60, 1, 2)
    assert one.passing_frac == pytest.approx(1 / 3) and not one.short
    assert (found["exact_words"].rows, found["exact_words"].tokens) == (1, 10)
    assert found["json"].short and found["json"].passing_frac == 0.0
    given = supply(pool, lab, passes=lambda row: {r.id: True for r in row.requirements})
    assert given["lowercase"].passing_rows == 3 and given["lowercase"].tokens == 0
    with pytest.raises(TaxonomyError, match="token counts"):
        supply(pool, lab, [1])


def test_rows_get_their_leaf_and_nothing_else_changes() -> None:
    lab = Taxonomy.load("lab")
    low = Requirement("lab:lowercase")
    rows = [
        a_row("a", "x", low, leaf="json", weight=2.0),
        a_row("a", "x", low),
        a_row("b", "y", leaf="json"),
        a_row("c", "z", leaf="unknown"),
    ]
    pool = Pool.from_rows(rows)
    labelled = assign(pool, lab)
    assert labelled.leaves == leaves_of_rows(pool, lab) == ["lowercase", "lowercase", "json", None]
    assert labelled.ids == pool.ids and labelled.weights.tolist() == pool.weights.tolist()
    assert assign(labelled, lab) is labelled


def test_a_row_with_an_unknown_requirement_is_named() -> None:
    row = replace(a_row("a", "x", Requirement("lab:lowercas")), id="row7")
    with pytest.raises(VerifierError, match=r"row row7.*lab:lowercas.*lab:lowercase"):
        row_verdicts(row)
    twice = a_row(
        "a", "red fox", Requirement("lab:exact_words", {"n": 2}), Requirement("lab:exact_words", {"n": 3})
    )
    assert row_verdicts(twice) == {"lab:exact_words": False}
