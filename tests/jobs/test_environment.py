"""The verbs over an environment, as library and as commands: what they give, and what they refuse."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import orjson
import pytest

from autosft.errors import ArtifactError, CampaignError, ConfigError, HoldoutError, SuiteError
from autosft.evals import load_suite
from autosft.lab.base import base_dir
from autosft.meta.environment import Environment
from autosft.meta.holdout import seal_suite
from autosft.meta.sealed import sealed_folder
from tests.campaigns import command, run_cli

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def campaign(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("env") / "tiny"
    done = subprocess.run(
        command(out, "campaign.rounds=0", "executor=queue"), check=False, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    return out


def items(folder: Path) -> Path:
    path = folder / "mine.jsonl"
    line = {"prompt": "Say hello.", "requirements": [{"id": "lab:lowercase"}], "leaf": "lowercase"}
    path.write_bytes(orjson.dumps(line))
    return path


def rows(folder: Path) -> Path:
    path = folder / "rows.jsonl"
    made = [{"prompt": "Say hello.", "response": "hello"}, {"prompt": "Say bye.", "response": "bye"}]
    path.write_bytes(b"\n".join(map(orjson.dumps, made)))
    return path


def test_jobs_are_listed_shown_and_followed(campaign):
    shown = run_cli("jobs", str(campaign))
    assert shown.returncode == 0 and shown.stdout.count("done") == 2 and "seed 1" in shown.stdout
    listed = json.loads(run_cli("jobs", str(campaign), "--json").stdout)
    assert {row["kind"] for row in listed} == {"train"}
    followed = run_cli("jobs", str(campaign), listed[0]["id"][:8], "--follow")
    assert followed.returncode == 0 and "attempt 1" in followed.stdout and "done" in followed.stderr
    for arguments, words in ((("nothing",), "no job"), (("--cancel",), "which job?")):
        refused = run_cli("jobs", str(campaign), *arguments)
        assert refused.returncode == 2 and words in refused.stderr


def test_a_build_is_trained_with_another_seed_only_where_it_has_a_plan(campaign):
    build = next((campaign / "artifacts" / "build").glob("*")).name
    answered = run_cli("job", str(campaign), build[:10], "--seed", "0")
    assert answered.returncode == 0, answered.stderr
    record = Environment(campaign).queue.wait(answered.stdout.strip(), 120)
    assert record.state == "done"
    with pytest.raises(ArtifactError):
        Environment(campaign).train(build, 77)
    with pytest.raises(ArtifactError, match="no build"):
        Environment(campaign).train("zzz", 0)


def test_a_build_of_other_tokens_is_refused(campaign, tmp_path):
    copy = Path(shutil.copytree(campaign, tmp_path / "tiny"))
    facts = orjson.loads((copy / "campaign.json").read_bytes())
    (copy / "campaign.json").write_bytes(orjson.dumps({**facts, "budget_tokens": facts["budget_tokens"] + 1}))
    build = next((copy / "artifacts" / "build").glob("*")).name
    with pytest.raises(CampaignError, match="compared at equal tokens"):
        Environment(copy).train(build, 0)


def test_evaluation_and_import_answer_at_once_and_leave_results(campaign, tmp_path):
    answered = run_cli("eval", str(tmp_path / "e"), str(base_dir()), "--suite", str(items(tmp_path)),
                       "--max-new-tokens", "8")  # fmt: skip
    assert answered.returncode == 0, answered.stderr
    environment = Environment(tmp_path / "e")
    done = environment.queue.wait(answered.stdout.strip(), 120)
    assert done.state == "done", environment.queue.read_log(done.id)
    assert (
        environment.root / "evals" / next((environment.root / "evals").iterdir()).name / "results.json"
    ).exists()
    imported = run_cli("data", str(tmp_path / "e"), str(rows(tmp_path)), "--against", str(items(tmp_path)))
    assert imported.returncode == 0, imported.stderr
    assert environment.queue.wait(imported.stdout.strip(), 120).state == "done"
    from autosft.pool import read_pool

    written = next((environment.root / "data").glob("*/rows.parquet"))
    assert [row.prompt for row in read_pool(written)[0].rows()] == ["Say bye."]
    assert environment.import_data([rows(tmp_path)], [str(items(tmp_path))], ["--rule", "half"]) == (
        imported.stdout.strip()
    ), "the same import is the same job"


def test_sealed_suites_cannot_be_named(campaign, tmp_path):
    sealed = next(sealed_folder(campaign).glob("twin-*")) / "items.jsonl"
    environment = Environment(campaign)
    link = tmp_path / "innocent.jsonl"
    link.symlink_to(sealed)
    for path in (sealed, link):
        with pytest.raises(HoldoutError, match="sealed"):
            environment.evaluate(base_dir(), [str(path)])
        with pytest.raises(HoldoutError, match="sealed"):
            environment.import_data([rows(tmp_path)], [str(path)])
    refused = run_cli("eval", str(campaign), str(base_dir()), "--suite", str(sealed))
    assert refused.returncode == 2 and "sealed" in refused.stderr and "Traceback" not in refused.stderr
    assert "eval" not in {record.kind for record in environment.queue.jobs()}
    name = environment.import_data([rows(tmp_path)], [])  # the campaign's own twin, as digests
    assert environment.queue.wait(name, 120).state == "done"


def test_what_is_held_out_is_refused_under_any_name_and_through_any_option(tmp_path):
    out, mine = tmp_path / "sealed-for", items(tmp_path)
    folder = Path(seal_suite(out, load_suite("jsonl", path=str(mine)))["folder"])
    sealed, environment = folder / "items.jsonl", Environment(out)
    open_items = tmp_path / "open.jsonl"
    open_items.write_bytes(mine.read_bytes().replace(b"Say hello.", b"Name a fruit, please."))
    renamed = Path(shutil.copyfile(sealed, tmp_path / "renamed.jsonl"))
    with environment.queue.runner_lock():  # nothing is started
        for path in (mine, renamed):
            with pytest.raises(HoldoutError):
                environment.evaluate(base_dir(), [str(path)])
            with pytest.raises(HoldoutError):
                environment.import_data([rows(tmp_path)], [str(path)])
        for option in ("--suite", "--out", f"--suite={sealed}", "--data"):
            with pytest.raises(ConfigError, match="no option"):
                environment.evaluate(base_dir(), [str(open_items)], [option, str(sealed)])
        with pytest.raises(ConfigError, match="no option"):
            environment.import_data([rows(tmp_path)], [str(open_items)], ["--against", str(sealed)])
        with pytest.raises(SuiteError, match="comma"):
            environment.evaluate(base_dir(), [f"{sealed},lab"])
        with pytest.raises(HoldoutError):
            environment.import_data([sealed], [str(open_items)])
        with pytest.raises(HoldoutError):
            environment.keep(folder)
        assert not environment.queue.jobs()
        name = environment.evaluate(base_dir(), [str(open_items)], ["--limit", "1"])
        assert environment.queue.cancel(name).state == "cancelled", "an open suite is taken"


def test_artifacts_are_kept_fetched_and_handed_in(tmp_path):
    environment = Environment(tmp_path / "e")
    key = environment.keep(base_dir())
    assert environment.keep(base_dir()) == key and len(environment.artifacts()) == 1
    out = environment.fetch(key[:8], tmp_path / "copy")
    assert (out / "config.json").read_bytes() == (base_dir() / "config.json").read_bytes()
    with pytest.raises(ArtifactError, match="exists"):
        environment.fetch(key, out)
    environment.submit(key, "best so far")
    assert environment.artifacts()[0]["submitted"]
    other = environment.keep(items(tmp_path))
    with pytest.raises(ArtifactError, match="no model folder"):
        environment.submit(other)
    with pytest.raises(ArtifactError, match="nothing to store"):
        environment.keep(tmp_path / "nowhere")
    listed = run_cli("artifact", "list", str(tmp_path / "e"))
    assert listed.returncode == 0 and "handed in" in listed.stdout
    (environment.store.folder("stored", key) / "config.json").write_text("{}")
    with pytest.raises(ArtifactError, match="changed"):
        environment.fetch(key, tmp_path / "again")


def test_bad_input_is_told_what_where_and_what_to_do(tmp_path):
    environment = Environment(tmp_path / "e")
    with pytest.raises(CampaignError, match="no campaign here"):
        environment.train("x", 0)
    with pytest.raises(CampaignError, match="no model folder"):
        environment.evaluate(tmp_path, ["ifeval"])
    with pytest.raises(SuiteError, match="no such file"):
        environment.evaluate(base_dir(), ["missing.jsonl"])
    with pytest.raises(SuiteError, match="nothing to compare with"):
        environment.import_data([rows(tmp_path)], [])
    with pytest.raises(CampaignError, match="no such file"):
        environment.import_data([tmp_path / "none"], ["ifeval"])
    bad = run_cli("jobs", str(tmp_path / "none"))
    assert bad.returncode == 2 and "no campaign folder" in bad.stderr
