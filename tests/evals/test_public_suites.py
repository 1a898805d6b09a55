"""IFEval, IFBench, GSM8K, HumanEval, MBPP+: loading, official aggregates, clear errors."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path

import pytest

from autosft.errors import HoldoutError, SuiteError
from autosft.evals import Output, Suite, load_suite, score_outputs, seal
from autosft.evals.aggregates import aggregate
from autosft.evals.content_guard import content_flags
from autosft.evals.suites.halves import halves, write_suite
from autosft.taxonomy import Taxonomy
from autosft.types import EvalItem, Message, Requirement


@pytest.fixture(scope="session")
def data() -> Path:
    root = Path(__file__).resolve().parents[2]
    folder = Path(os.environ.get("AUTOSFT_SHARED", root.parent / "shared")) / "data"
    if not folder.is_dir():
        pytest.skip(f"no shared data at {folder}; set AUTOSFT_SHARED")
    return folder


@pytest.fixture(scope="session")
def language_data(data: Path) -> None:
    for package in ("langdetect", "nltk", "if_verifiable", "emoji", "syllapy"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    if not (data / "nltk_data").is_dir():
        pytest.skip(f"no {data / 'nltk_data'}")
    from autosft.taxonomy.verifiers.nltk_text import nltk

    if str(data / "nltk_data") not in nltk().data.path:
        nltk().data.path.insert(0, str(data / "nltk_data"))


def lines(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(
    ("name", "folder", "n_items", "n_requirements"),
    [
        ("ifeval", "ifeval", 541, 834),
        ("ifbench", "ifbench", 300, 344),
        ("gsm8k", "gsm8k", 1319, 1319),
        ("humaneval", "humaneval", 164, 164),
        ("mbpp_plus", "mbpp", 378, 756),
    ],
)
def test_suites_are_whole(data: Path, name: str, folder: str, n_items: int, n_requirements: int) -> None:
    suite = load_suite(name, path=data / folder)
    assert (len(suite), sum(len(i.requirements) for i in suite.items)) == (n_items, n_requirements)
    assert suite.fingerprint == load_suite(name, path=data).fingerprint
    assert len(load_suite(name, path=data, limit=7)) == 7
    if name in ("ifeval", "ifbench", "mbpp_plus"):
        leaves = {name.rsplit("/", 1)[-1] for name in _leaf_names(name)}
        assert set(suite.leaves) <= leaves


def _leaf_names(tree: str) -> list[str]:
    import yaml  # type: ignore[import-untyped]

    from autosft.taxonomy.tree import SHIPPED

    return list(yaml.safe_load(SHIPPED.read_text(encoding="utf-8"))[tree]["leaves"])


def test_trees_of_the_public_suites_decide_their_examples(language_data: None) -> None:
    for name, size in (("ifeval", 25), ("ifbench", 58), ("mbpp_plus", 5)):
        assert len(Taxonomy.load(name).names) == size


@pytest.mark.parametrize(
    ("name", "prompts", "answers", "wanted"),
    [
        (
            "ifeval",
            "ifeval/input_data.jsonl",
            "ifeval/input_response_data_gpt4_20231107_145030.jsonl",
            "ifeval_gpt4_official_83282e4",
        ),
        (
            "ifbench",
            "ifbench/IFBench_test.300.jsonl",
            "ifbench/sample_output.jsonl",
            "ifbench_sample_ai2_db69a6f",
        ),
    ],
)
def test_official_aggregates_are_reproduced(
    language_data: None, data: Path, name: str, prompts: str, answers: str, wanted: str
) -> None:
    official = json.loads((data / "parity/aggregates.json").read_text())[wanted]
    given = {row["prompt"].strip(): row["response"] for row in lines(data / answers)}
    suite = load_suite(name, path=data / prompts)
    items = [item for item in suite.items if item.messages[0].content.strip() in given]
    outputs = [Output(item.id, given[item.messages[0].content.strip()]) for item in items]
    scores = score_outputs(items, outputs)
    metrics = aggregate(name, scores)["metrics"]
    assert len(items) == official["prompts"]
    assert sum(len(item.requirements) for item in items) == official["instructions"]
    # The old program drew a random letter for '#' and '!' (two prompts); the literal one is counted here.
    slack = 2.5 if name == "ifeval" else 0.5
    for ours, theirs, n in (
        ("prompt_strict", "prompt_strict", official["prompts"]),
        ("prompt_loose", "prompt_loose", official["prompts"]),
        ("instruction_strict", "inst_strict", official["instructions"]),
        ("instruction_loose", "inst_loose", official["instructions"]),
    ):
        assert abs(metrics[ours]["mean"] - official[theirs]) * n <= slack, ours


def test_a_missing_file_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AUTOSFT_DATA", raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(SuiteError, match=r"input_data.jsonl: .*google-research.*--data.*AUTOSFT_DATA"):
        load_suite("ifeval")
    with pytest.raises(SuiteError, match=r"MbppPlus.jsonl.gz or"):
        load_suite("mbpp_plus", path=tmp_path)
    monkeypatch.setenv("AUTOSFT_DATA", str(tmp_path))
    (tmp_path / "IFBench_test.jsonl").write_text('{"key": 1}\n')
    with pytest.raises(SuiteError, match="instruction_id_list"):
        load_suite("ifbench")
    (tmp_path / "IFBench_test.jsonl").write_text("{\n")
    with pytest.raises(SuiteError, match=r"IFBench_test.jsonl:1: not JSON"):
        load_suite("ifbench")
    row = {"key": 1, "prompt": "x", "instruction_id_list": ["count:nothing"], "kwargs": [{}]}
    (tmp_path / "IFBench_test.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(SuiteError, match=r"key 1: .*unknown requirement"):
        load_suite("ifbench")
    with pytest.raises(SuiteError, match="below 1"):
        load_suite("ifbench", path=tmp_path, limit=0)


@pytest.mark.parametrize(
    ("prompt", "response", "requirements", "flags"),
    [
        ("Tell me about the fox.", "", (), ("empty",)),
        ("Tell me about the fox.", " ...! ", (), ("empty",)),
        ("Tell me all about the red fox.", "Tell me all about the red fox.", (), ("echo",)),
        ("Tell me about the fox.", "fox " * 30, (), ("repetition",)),
        ("Tell me about the fox.", "It is red.\n" * 6, (), ("repetition",)),
        (
            "Tell me about the fox.",
            "The fox is a small animal that lives in the woods and eats mice.",
            (),
            (),
        ),
        ("Say fox ten times.", "fox " * 10, ("keywords:frequency",), ()),
        ("Is it red?", "Yes.", (), ()),
        ("Tell me about the fox.", "the cat and the dog " * 20, (), ("repetition",)),
    ],
)
def test_answers_that_ignore_the_question_are_flagged(
    prompt: str, response: str, requirements: tuple[str, ...], flags: tuple[str, ...]
) -> None:
    assert content_flags(prompt, response, [Requirement(key) for key in requirements]) == flags


def test_a_repeated_prompt_without_an_answer_is_an_echo() -> None:
    asked = Requirement("combination:repeat_prompt", {"prompt_to_repeat": "Tell me about the fox."})
    assert content_flags("Tell me about the fox. Repeat it.", "Tell me about the fox.", [asked]) == ("echo",)
    assert (
        content_flags("Tell me about the fox. Repeat it.", "Tell me about the fox. It is red.", [asked]) == ()
    )


def test_flagged_passes_are_counted_beside_the_score() -> None:
    message = (Message("user", "Tell me about the fox."),)
    items = [EvalItem(k, "s", message, (Requirement("punctuation:no_comma"),), "no_comma") for k in "ab"]
    scores = score_outputs(items, [Output("a", "fox " * 40), Output("b", "It is red.")])
    assert [s.strict for s in scores] == [True, True] and scores[0].flags == ("repetition",)
    counts = aggregate("s", scores)["counts"]
    assert (counts["passes"], counts["flagged_passes"], counts["repetition"]) == (2, 1, 1)


def test_real_answers_are_seldom_flagged(data: Path) -> None:
    rows = lines(data / "ifeval/input_response_data_gpt4_20231107_145030.jsonl")
    flagged = [row for row in rows if content_flags(row["prompt"], row["response"])]
    assert len(flagged) <= 0.03 * len(rows)


def test_halves_are_disjoint_and_stay_the_same(tmp_path: Path) -> None:
    def item(number: int) -> EvalItem:
        return EvalItem(
            str(number),
            "s",
            (Message("user", f"Say {number}."),),
            (Requirement("punctuation:no_comma"),),
            "x",
        )

    suite = Suite("s", tuple(item(k) for k in range(21)))
    dev, held = halves(suite)
    assert len(dev) + len(held) == 21 and abs(len(dev) - len(held)) <= 1
    assert not {i.id for i in dev.items} & {i.id for i in held.items}
    again, _ = halves(Suite("s", suite.items[::-1]))
    assert {i.id for i in again.items} == {i.id for i in dev.items}
    write_suite(dev, tmp_path / "dev.jsonl")
    read = load_suite("jsonl", path=tmp_path / "dev.jsonl")
    assert [i.id for i in read.items] == [i.id for i in dev.items]
    with pytest.raises(SuiteError, match="too few"):
        halves(Suite("s", (item(1),)))


def test_a_sealed_suite_is_no_file_like_others(tmp_path: Path) -> None:
    suite = Suite(
        "s", (EvalItem("a", "s", (Message("user", "Say a."),), (Requirement("punctuation:no_comma"),), "x"),)
    )
    seal(suite, tmp_path / "sealed", campaign=tmp_path / "c", digest=lambda texts: {"n": len(texts)})
    for name, path in (("jsonl", tmp_path / "sealed/items.jsonl"), ("ifeval", tmp_path / "sealed")):
        with pytest.raises(HoldoutError, match="sealed"):
            load_suite(name, path=path)
