"""Settings: what can be set, and what is said when something cannot."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given, settings
from hypothesis import strategies as st

from autosft.config import conf_dir, config_from_json, load_config, presets
from autosft.config.compose import _quoted
from autosft.config.schema import BOUNDS, Config
from autosft.config.values import describe, field_types, known_keys
from autosft.errors import ConfigError
from autosft.types import GenerateSettings, TrainSettings


def test_the_defaults_are_the_embedded_lab() -> None:
    config = load_config()
    assert config.campaign.rounds == 5
    assert config.campaign.seeds == (0, 1, 2)
    assert config.suite.names == ("lab",)
    assert config.pool.order == "file"
    assert config.policy.name == "rules"
    assert config.components == dataclasses.replace(
        config.components, executor=True, analysis=True, revision=True
    )
    assert (config.trainer, config.generate) == (TrainSettings(), GenerateSettings())


def test_overrides_reach_their_settings_with_their_types(tmp_path: Path) -> None:
    config = load_config(
        [
            "campaign.rounds=6",
            "lab.seed=3",
            "trainer.lr=1e-3",
            f"pool.path={tmp_path}",
            f"model.path={tmp_path}",
            "suite.name=lab",
            "executor.slots=2",
            "campaign.seeds=4,5",
            "holdout.enabled=false",
            "spend.usd=3",
            "programs=[]",
        ]
    )
    assert (config.campaign.rounds, config.lab.seed, config.trainer.lr) == (6, 3, 1e-3)
    assert config.pool.path == config.model.path == str(tmp_path)
    assert config.pool.order == "shuffle", "file order is the lab's only"
    assert config.executor.slots == 2
    assert config.campaign.seeds == (4, 5)
    assert config.holdout.enabled is False
    assert config.spend.usd == 3.0 and isinstance(config.spend.usd, float)
    assert config.programs == ()


def test_the_last_of_equal_overrides_wins_and_keys_win_over_presets() -> None:
    assert load_config(["campaign.rounds=1", "campaign.rounds=2"]).campaign.rounds == 2
    config = load_config(["components.analysis=true", "components=base"])
    assert (config.components.analysis, config.components.executor) == (True, False)


@pytest.mark.parametrize("group", ["model", "pool"])
def test_a_path_may_stand_for_its_group(group: str, tmp_path: Path) -> None:
    assert getattr(load_config([f"{group}={tmp_path}"]), group).path == str(tmp_path)


def test_a_suite_file_loads_as_jsonl_unless_names_are_given(tmp_path: Path) -> None:
    file = tmp_path / "items.jsonl"
    file.write_text("{}\n")
    assert load_config([f"suite={file}"]).suite.names == ("jsonl",)
    assert load_config([f"suite.path={file}"]).suite.names == ("jsonl",)
    assert load_config([f"suite.path={file}", "suite.names=lab,jsonl"]).suite.names == ("lab", "jsonl")


def test_paths_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rows.jsonl").write_text("{}\n")
    monkeypatch.chdir(tmp_path)
    assert load_config(["pool.path=rows.jsonl"]).pool.path == str(tmp_path / "rows.jsonl")


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=30))
@settings(max_examples=8, deadline=None)
def test_text_arrives_as_it_was_written(text: str) -> None:
    text = text.strip()
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    if not text or text == "null" or "${" in text or quoted:
        return
    assert load_config([f"campaign.out={text}"]).campaign.out == text


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=30))
@settings(max_examples=200, deadline=None)
def test_quoted_text_reads_back_equal_in_hydras_grammar(text: str) -> None:
    text = text.strip()
    if not text or "${" in text or (len(text) > 1 and text[0] == text[-1] and text[0] in "'\""):
        return
    assert OverridesParser.create().parse_override(f"key={_quoted(text)}").value() == text


def test_awkward_paths(tmp_path: Path) -> None:
    for name in (
        "a b",
        "x=1",
        "(v2)",
        "it's",
        'q"q',
        "{c}",
        "[d]",
        "a,b",
        "back\\slash",
        "tail\\",
        "#h",
        "ünï",
        "$HOME",
    ):
        folder = tmp_path / name
        folder.mkdir()
        assert load_config([f"pool.path={folder}"]).pool.path == str(folder), name


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("trainer.lrr=1", ["trainer.lrr", "trainer.lr", "a number"]),
        ("lr=1", ["trainer.lr", "a number"]),
        ("campain.rounds=3", ["campaign.rounds", "a whole number"]),
        ("zzzz=1", ["zzzz", "groups: campaign"]),
        ("hydra.run.dir=/x", ["hydra.run.dir", "unknown"]),
        ("campaign.rounds=many", ["campaign.rounds", "'many'", "a whole number, at least 0"]),
        ("campaign.rounds=1.5", ["campaign.rounds", "1.5", "a whole number"]),
        ("campaign.rounds=true", ["campaign.rounds", "true", "a whole number"]),
        ("campaign.rounds=null", ["campaign.rounds", "null"]),
        ("campaign.rounds=", ["campaign.rounds", "a whole number"]),
        ("campaign.seeds=[0,x]", ["campaign.seeds", "'x'", "a list of whole numbers"]),
        ("campaign.seeds=", ["campaign.seeds", "at least one"]),
        ("campaign.seeds=1,1", ["campaign.seeds", "twice"]),
        ("campaign.name=../up", ["campaign.name", "folder"]),
        ("trainer.lr=nan", ["trainer.lr", "a number"]),
        ("trainer.lr=-1", ["trainer.lr", "more than 0"]),
        ("trainer.lr=choice(1,2)", ["trainer.lr", "a number"]),
        ("trainer.dtype=fp8", ["trainer.dtype", "float32, bfloat16"]),
        ("trainer.min_lr=0.5", ["trainer.min_lr", "trainer.lr"]),
        ("trainer=adam", ["trainer", "'adam'", "known: lab"]),
        ("components=bsae", ["components", "did you mean base"]),
        ("components.base=false", ["components.base"]),
        ("holdout.enabled=maybe", ["holdout.enabled", "true or false"]),
        ("lab.rows=10", ["lab.rows", "at least 100"]),
        ("model=/no/such/model", ["model.path", "/no/such/model"]),
        ("pool.path=~/no/such/pool", ["pool.path", "no/such/pool"]),
        ("suite.names=jsonl", ["suite.path", "jsonl"]),
        ("suite.guard=lab", ["suite.guard", "lab"]),
        ("campaign.name=${model.path}", ["references"]),
        ("+extra=1", ["+extra=1", "key=value"]),
        ("~trainer", ["~trainer", "key=value"]),
        ("rounds", ["rounds", "key=value"]),
        ("=3", ["key=value"]),
        ("", ["key=value"]),
    ],
)
def test_a_bad_override_is_named_with_what_to_do(override: str, words: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config([override])
    message = str(caught.value)
    for word in words:
        assert word in message, message
    assert "\n" not in message and "Hydra" not in message


@given(st.text(max_size=40))
@settings(max_examples=5, deadline=None)
def test_no_text_raises_anything_but_a_config_error(text: str) -> None:
    for override in (
        text,
        f"trainer.lr={text}",
        f"campaign.seeds={text}",
        f"trainer={text}",
        f"model.path={text}",
    ):
        with contextlib.suppress(ConfigError):
            load_config([override])


def test_every_setting_has_a_value_in_conf_and_every_value_a_setting() -> None:
    values: set[str] = set()
    for group in field_types(Config):
        for name in presets(group):
            keys = set(yaml.safe_load((conf_dir() / group / f"{name}.yaml").read_text()))
            wanted = {key.split(".")[1] for key in known_keys() if key.startswith(f"{group}.")}
            assert keys == wanted, (group, name)
            values |= {f"{group}.{key}" for key in keys}
    assert values | {"programs"} == set(known_keys())


def test_every_preset_loads(tmp_path: Path) -> None:
    file = tmp_path / "items.jsonl"
    file.write_text("{}\n")
    for group in field_types(Config):
        for name in presets(group):
            load_config([f"{group}={name}", *([f"suite.path={file}"] if name == "jsonl" else [])])


def test_every_number_has_bounds() -> None:
    numbers = {key for key, kind in known_keys().items() if "number" in describe(kind)}
    assert numbers == set(BOUNDS)


def test_stored_settings_read_back_equal_and_are_checked() -> None:
    config = load_config(["campaign.seeds=7", "components=base"])
    data = config.to_json()
    assert config_from_json(data) == config
    with pytest.raises(ConfigError, match=r"campaign\.roundz.*campaign\.rounds"):
        config_from_json({**data, "campaign": {**data["campaign"], "roundz": 1}})
    with pytest.raises(ConfigError, match=r"campaign\.\w+: setting is missing"):
        config_from_json({**data, "campaign": {}})
    with pytest.raises(ConfigError, match=r"campaign: expected a group"):
        config_from_json({**data, "campaign": [1]})


def test_settings_of_older_campaigns_are_completed_with_what_was_in_effect() -> None:
    config = load_config(["campaign.seeds=7"])
    older = config.to_json()
    del older["llm"], older["tracking"], older["campaign"]["families"]
    for key in [key for key in older["trainer"] if key.endswith("parallel") or key == "overlap"]:
        del older["trainer"][key]
    assert config_from_json(older) == config
    with pytest.raises(ConfigError, match="spend"):
        config_from_json({key: value for key, value in older.items() if key != "spend"})


def test_a_config_cannot_be_changed() -> None:
    config = load_config()
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.campaign.rounds = 9  # type: ignore[misc]


def test_slots_follow_the_cores_and_never_exceed_the_jobs() -> None:
    executor = load_config().executor
    assert 1 <= executor.worker_slots(3) <= min(3, len(os.sched_getaffinity(0)))
    assert dataclasses.replace(executor, slots=2).worker_slots(8) == 2
    assert dataclasses.replace(executor, slots=8).worker_slots(3) == 3
    assert dataclasses.replace(executor, threads_per_worker=4096).worker_slots(3) == 1


def test_a_run_takes_a_slot_for_each_of_its_ranks() -> None:
    executor = dataclasses.replace(load_config([]).executor, slots=8)
    assert [executor.worker_slots(6, ranks) for ranks in (1, 2, 3, 8, 16)] == [6, 4, 2, 1, 1]
    assert executor.worker_slots(3, 2) == 3
    assert dataclasses.replace(executor, slots=None, threads_per_worker=4096).worker_slots(3, 2) == 1


def test_an_application_that_uses_hydra_itself_is_left_alone() -> None:
    code = (
        "from hydra import initialize_config_dir, compose\n"
        "from autosft.config import conf_dir, load_config\n"
        "with initialize_config_dir(str(conf_dir()), version_base='1.3'):\n"
        "    load_config(['campaign.rounds=2'])\n"
        "    assert compose('config').campaign.rounds == 5\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
