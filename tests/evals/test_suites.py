from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from autosft.errors import SuiteError
from autosft.evals import Output, Suite, load_suite, read_items, read_outputs, write_items, write_outputs
from autosft.types import EvalItem, Message, Requirement

LINE = {"prompt": "Name a fox.", "requirements": [{"id": "punctuation:no_comma"}]}


def an_item(key: str, **more: Any) -> EvalItem:
    messages = (Message("system", "Be brief."), Message("user", f"Say {key}."))
    return EvalItem(key, "s", messages, (Requirement("lab:exact_words", {"n": 2}),), "exact_words", **more)


def suite_file(folder: Path, *lines: Any) -> Path:
    path = folder / "mine.jsonl"
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


def test_items_survive_the_disk(tmp_path: Path) -> None:
    items = (an_item("é\u2028x", tags={"phrasing": "held"}, reference="42"), an_item("b"))
    write_items(items, tmp_path / "items.jsonl")
    assert read_items(tmp_path / "items.jsonl") == items
    (tmp_path / "items.jsonl").write_text('{"id": 1}\n')
    with pytest.raises(SuiteError, match=r"items.jsonl:1: not an evaluation item"):
        read_items(tmp_path / "items.jsonl")
    with pytest.raises(SuiteError, match="cannot read"):
        read_items(tmp_path / "none.jsonl")


def test_outputs_survive_the_disk(tmp_path: Path) -> None:
    outputs = [Output("a", "x\ny", True, 5, 1), Output("b", "")]
    write_outputs(outputs, tmp_path / "o.jsonl")
    assert read_outputs(tmp_path / "o.jsonl") == outputs
    (tmp_path / "o.jsonl").write_text('{"item": "a", "text": "x"}\n{"item": "a", "text": null}\n')
    with pytest.raises(SuiteError, match=r"o.jsonl:2"):
        read_outputs(tmp_path / "o.jsonl")


def test_a_suite_knows_its_identity_and_what_must_not_be_trained_on() -> None:
    suite = Suite("s", (an_item("a", reference="forty-two"), an_item("b")))
    assert suite.reference_texts() == ("Say a.", "Say b.", "forty-two")
    assert suite.fingerprint == Suite("s", suite.items).fingerprint
    assert suite.fingerprint != Suite("s", suite.items[::-1]).fingerprint
    assert suite.fingerprint != Suite("s", (suite.items[0], replace(suite.items[1], leaf="x"))).fingerprint
    with pytest.raises(SuiteError, match="more than once, first 'a'"):
        Suite("s", (an_item("a"), an_item("a")))
    with pytest.raises(SuiteError, match="no item"):
        Suite("s", ())


def test_the_listing_is_closed() -> None:
    with pytest.raises(SuiteError, match="did you mean 'lab'"):
        load_suite("labs")
    with pytest.raises(SuiteError, match="known suites"):
        load_suite("os")
    with pytest.raises(SuiteError, match=r"settings do not fit.*takes: path, name, taxonomy"):
        load_suite("jsonl", file="x")


def test_a_users_file_becomes_a_suite(tmp_path: Path) -> None:
    path = suite_file(
        tmp_path,
        LINE,
        "",
        {
            "id": "turns",
            "messages": [{"role": "system", "content": "x"}, {"role": "user", "content": "2+2?"}],
            "requirements": [{"id": "answer:number", "kwargs": {"answer": 4}}, "lab:lowercase"],
            "reference": "4",
            "tags": {"level": 1},
        },
        {"prompt": "x", "requirements": [{"id": "lab:lowercase"}], "leaf": "mine"},
    )
    suite = load_suite("jsonl", path=path)
    assert suite.name == "mine" and [i.id for i in suite.items] == ["1", "turns", "4"]
    assert [i.leaf for i in suite.items] == ["no_comma", "lowercase", "mine"]
    assert suite.items[1].tags == {"level": "1"} and suite.items[1].requirements[1].kwargs == {}
    lab = load_suite("jsonl", path=path, name="other", taxonomy="lab")
    assert lab.name == "other" and lab.items[0].leaf == "no_comma"


def test_ifevals_own_form_is_read(tmp_path: Path) -> None:
    line = {
        "key": 1000,
        "prompt": "Write.",
        "instruction_id_list": ["punctuation:no_comma", "detectable_format:number_bullet_lists"],
        "kwargs": [{}, {"num_bullets": 3, "relation": None}],
    }
    item = load_suite("jsonl", path=suite_file(tmp_path, line)).items[0]
    assert item.id == "1000" and item.leaf == "no_comma"
    assert item.requirements[1] == Requirement("detectable_format:number_bullet_lists", {"num_bullets": 3})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{not json", "line 2: not JSON"),
        ("[1]", "line 2: a line must be a JSON object"),
        ({"prompt": "x"}, "line 2: needs 'requirements'"),
        ({"prompt": "x", "requirments": [{"id": "lab:lowercase"}]}, "needs 'requirements'"),
        ({"prompt": "x", "requirements": []}, "needs 'requirements'"),
        ({"prompt": " ", "requirements": ["lab:lowercase"]}, "needs 'prompt'"),
        ({"prompt": "x", "requirements": ["lab:lowercas"]}, "nearest: lab:lowercase"),
        ({"prompt": "x", "requirements": ["lab:exact_words"]}, "'n' is missing"),
        ({"prompt": "x", "requirements": [{"name": "x"}]}, "not a requirement"),
        ({"messages": [{"role": "robot", "content": "x"}], "requirements": ["lab:lowercase"]}, "not a turn"),
        (
            {"messages": [{"role": "assistant", "content": "x"}], "requirements": ["lab:lowercase"]},
            "last turn",
        ),
        ({**LINE, "id": "1"}, "id '1' is that of line 1"),
        ({**LINE, "leaf": 3}, "must be texts"),
        ({"prompt": "x", "instruction_id_list": ["lab:lowercase"], "kwargs": []}, "as many 'kwargs'"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: Any, message: str) -> None:
    with pytest.raises(SuiteError, match=message):
        load_suite("jsonl", path=suite_file(tmp_path, LINE, line))


def test_unreadable_and_empty_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="cannot read"):
        load_suite("jsonl", path=tmp_path / "none.jsonl")
    with pytest.raises(SuiteError, match="holds no line"):
        load_suite("jsonl", path=suite_file(tmp_path))
    with pytest.raises(SuiteError, match="and 3 more lines"):
        load_suite("jsonl", path=suite_file(tmp_path, *["{"] * 8))
    (tmp_path / "bytes.jsonl").write_bytes(b'{"prompt": "\xff"}\n')
    with pytest.raises(SuiteError, match="line 1"):
        load_suite("jsonl", path=tmp_path / "bytes.jsonl")
