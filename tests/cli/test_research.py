"""Commands over a real campaign of one round: difference, memory, rebuild, operator's decisions, doctor."""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autosft import cli
from autosft.artifacts import ArtifactStore
from autosft.memory import Hypotheses, Hypothesis, Journal
from autosft.meta import views
from tests.campaigns import TINY, run_cli

pytestmark = pytest.mark.slow
ONE_ROUND = (*TINY, "campaign.rounds=1", "campaign.claim_seeds=0", "campaign.budget_tokens=3000")
Run = Callable[..., Any]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished campaign of rounds 0 and 1."""
    out = tmp_path_factory.mktemp("finished") / "tiny"
    assert cli.run_command(["run", *ONE_ROUND, "--out", str(out)]) == 0
    return out


@pytest.fixture
def copy(finished: Path, tmp_path: Path) -> Path:
    """A copy to change, with its sealed folder beside it."""
    shutil.copytree(finished.parent / ".sealed", tmp_path / ".sealed")
    return Path(shutil.copytree(finished, tmp_path / "tiny"))


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command; return its JSON where it was asked for, else (code, stdout, stderr)."""

    def call(*arguments: str, code: int = 0) -> Any:
        capsys.readouterr()
        assert cli.run_command([str(a) for a in arguments]) == code
        said = capsys.readouterr()
        if "--json" in arguments and code in (0, 1):
            return json.loads(said.out)
        return said.out if code == 0 else said.err

    return call


def files(folder: Path) -> dict[str, int]:
    return {str(p): p.stat().st_mtime_ns for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("command", ["hypotheses", "lineage", "diff", "doctor"])
def test_reading_commands_print_and_leave_the_campaign_alone(command: str, finished: Path, run: Run) -> None:
    before = files(finished)
    rest = ("0", "1") if command == "diff" else ()
    text = run(command, finished, *rest)
    assert len(text) > 100 and "\x1b" not in text and all(len(line) <= 80 for line in text.splitlines())
    assert run(command, finished, *rest, "--json")
    assert files(finished) == before


def test_report_writes_one_file_where_it_is_told(finished: Path, tmp_path: Path, run: Run) -> None:
    before = files(finished)
    target = tmp_path / "here.html"
    assert str(target) in run("report", finished, "--out", target)
    assert target.read_text().startswith("<!doctype html>") and files(finished) == before
    assert run("report", finished, "--json")["status"]["campaign"] == "tiny"
    error = run("report", finished, "--out", tmp_path / "no" / "here.html", code=2)
    assert "cannot be written" in error and error.count("\n") == 1


def test_diff_shows_what_the_round_did(finished: Path, run: Run) -> None:
    found = run("diff", finished, "0", "1", "--samples", "2", "--json")
    kinds = [a["kind"] for a in views.actions(finished)]
    assert [c["kind"] for c in found["recipe"]["added"]] == kinds and kinds
    touched = ("added", "removed", "changed", "reweighted", "moved")
    assert any(found["rows"][k] for k in touched)
    assert all(len(rows) <= 2 for rows in found["samples"].values())
    for pair in found["samples"]["changed"]:
        assert (pair["prompt_a"], pair["response_a"]) != (pair["prompt_b"], pair["response_b"])
    assert sum(row["a"] for row in found["token_share"]) == pytest.approx(1.0)
    error = run("diff", finished, "0", "9", code=2)
    assert "round 9 has no training set" in error and error.count("\n") == 1


def test_a_recipe_is_rebuilt_bit_for_bit(finished: Path, tmp_path: Path, run: Run) -> None:
    [_, first] = [r for r in views.rounds(finished) if r["build_fingerprint"]]
    receipt = finished / "artifacts/build" / first["build_fingerprint"] / "receipt.json"
    before = files(finished)
    done = run("build", receipt, "--campaign", finished, "--out", tmp_path / "kept", "--json")
    assert done["build"] == first["build_fingerprint"] and done["identical"] is True and not done["differs"]
    assert done["receipt"]["recipe"] == json.loads(receipt.read_text())["recipe"]
    again = Path(done["path"])
    assert (again / "rows.parquet").read_bytes() == receipt.with_name("rows.parquet").read_bytes()
    text = run("build", receipt, "--campaign", finished)
    assert "every file equals the campaign's own build" in " ".join(text.split())
    assert files(finished) == before, "the campaign is only read"


def test_a_recipe_is_built_without_a_campaign(finished: Path, tmp_path: Path, run: Run) -> None:
    [_, first] = [r for r in views.rounds(finished) if r["build_fingerprint"]]
    folder = finished / "artifacts/build" / first["build_fingerprint"]
    recipe = tmp_path / "recipe.json"
    recipe.write_text(json.dumps(json.loads((folder / "receipt.json").read_text())["recipe"]))
    done = run("build", recipe, "lab.rows=300", "lab.prompts_per_leaf=2", "--json")
    assert done["path"] is None and done["identical"] is None
    # Held-out digests are the campaign's own; rows, tokens and masks do not depend on them here.
    theirs = json.loads((folder / "record.json").read_text())["body"]["files"]
    assert {n: done["files"][n] for n in ("tokens.npy", "mask.npy")} == {
        n: theirs[n] for n in ("tokens.npy", "mask.npy")
    }
    error = run("build", recipe, "lab.rows=400", code=2)
    assert "the recipe is for pool" in error
    error = run("build", recipe, "lab.rows=300", "--campaign", finished, code=2)
    assert "brings its own pool" in error


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "cannot be read"), ("not json", "is not JSON"), ("[1]", "holds no recipe"), ("{}", "no recipe")],
)
def test_a_file_without_a_recipe_is_said(content: str | None, words: str, tmp_path: Path, run: Run) -> None:
    path = tmp_path / "recipe.json"
    if content is not None:
        path.write_text(content)
    error = run("build", path, code=2)
    assert words in error and str(path) in error and error.count("\n") == 1


def test_an_invalidated_round_no_longer_counts_and_the_campaign_goes_on(copy: Path, run: Run) -> None:
    done = run("invalidate", copy, "1", "--reason", " wrong  pool ", "--json")
    assert done["reason"] == "wrong pool" and done["invalidated"] == {"1": "wrong pool"}
    assert (done["incumbent"], done["claimed_best"]) == (0, 0)
    assert run("invalidate", copy, "1", "--reason", "wrong pool", "--json") == done, "twice is once"
    assert "invalidated already: wrong pool" in run("invalidate", copy, "1", "--reason", "other", code=2)
    assert run("status", copy, "--json")["state"] == "stopped"
    assert [r["invalidated"] for r in run("rounds", copy, "--json")] == [None, "wrong pool"]
    assert "x does not count" in run("rounds", copy)
    assert "does not count: wrong pool" in run("hypotheses", copy)
    assert "KiB" in run("report", copy, "--out", copy.parent / "r.html")
    assert "does not count" in (copy.parent / "r.html").read_text()
    # The same command afterwards ends as before, with another incumbent.
    assert "stopped" in run("run", *ONE_ROUND, "--out", copy)
    assert run("status", copy, "--json")["incumbent"] == 0


def test_a_chosen_parent_is_where_the_next_round_starts(copy: Path, run: Run) -> None:
    assert run("invalidate", copy, "1", "--reason", "test", "--json")["incumbent"] == 0
    error = run("revisit", copy, "1", code=2)
    assert "does not count: test" in error
    # The campaign once decided that there is nothing left to try; another parent changes that.
    store = ArtifactStore(copy / "artifacts")
    with store.create("decision", "0" * 24) as step:
        step.data = {"accepted": [], "rejected": []}
    Journal(copy).append("decision.taken", "2", {"decision": "0" * 24})
    assert run("revisit", copy, "0", "--json") == {"next_round": 2, "parent": 0}
    assert run("revisit", copy, "0", "--json") == {"next_round": 2, "parent": 0}, "twice is once"
    run("run", *ONE_ROUND, "campaign.rounds=2", "--out", copy)
    [last] = [r for r in run("lineage", copy, "--json") if r["round"] == 2]
    assert last["parent"] == 0 and last["parent_chosen"] and last["invalidated"] is None
    assert [e.key for e in Journal(copy).of_kind("decision.taken")] == ["1", "2", "2.2"]
    assert all(row["state"] != "fail" for row in run("doctor", copy, "--json"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("invalidate", "7", "--reason", "x"), "round 7 is not recorded (recorded rounds: 0 to 1)"),
        (("invalidate", "0", "--reason", "x"), "cannot be invalidated"),
        (("invalidate", "1", "--reason", "  "), "a reason is needed"),
        (("invalidate", "1"), "--reason"),
        (("revisit", "7"), "round 7 is not recorded"),
    ],
)
def test_an_operator_is_refused_in_one_line(
    arguments: tuple[str, ...], words: str, copy: Path, run: Run
) -> None:
    before = (copy / "journal.jsonl").read_bytes()
    command, *rest = arguments
    error = run(command, copy, *rest, code=2)
    assert words in error and error.count("\n") == 1
    assert (copy / "journal.jsonl").read_bytes() == before


def test_a_running_campaign_is_read_but_not_operated_on(copy: Path, run: Run) -> None:
    with (copy / ".lock").open("a+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        for command in ("invalidate", "revisit"):
            reason = ("--reason", "x") if command == "invalidate" else ()
            assert "is working on this campaign" in run(command, copy, "1", *reason, code=2)
        assert len(run("hypotheses", copy, "--json")) == 2 and run("report", copy, "--json")["rounds"]


def test_a_round_under_way_is_not_pulled_from_under_its_hypothesis(copy: Path, run: Run) -> None:
    Hypotheses(Journal(copy)).register(Hypothesis(2, "r" * 24, "c", {"json": 0.1}, 0.1, {"a": 1}, {"b": 1}))
    for arguments in (("invalidate", "1", "--reason", "x"), ("revisit", "1")):
        command, *rest = arguments
        assert "round 2 is under way" in run(command, copy, *rest, code=2)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


def harm_artifact(out: Path) -> None:
    flip(next((out / "artifacts" / "checkpoint").glob("*/model.safetensors")))


def harm_journal(out: Path) -> None:
    flip(out / "journal.jsonl")


def harm_record(out: Path) -> None:
    shutil.rmtree(next((out / "artifacts" / "round").iterdir()))


def harm_seal(out: Path) -> None:
    (out.parent / ".sealed" / out.name).chmod(0o755)


def harm_facts(out: Path) -> None:
    path = out / "campaign.json"
    path.write_text(path.read_text().replace('"schema": 1', '"schema": 99'))


def harm_base(out: Path) -> None:
    facts = json.loads((out / "campaign.json").read_text())
    base = Path(shutil.copytree(facts["base"], out.parent / "base"))
    flip(base / "model.safetensors")
    (out / "campaign.json").write_text(json.dumps({**facts, "base": str(base)}))


def harm_ledger(out: Path) -> None:
    with (out / "spend.jsonl").open("ab") as stream:
        stream.write(b"not json\n")


@pytest.mark.parametrize(
    ("harm", "row"),
    [
        (harm_artifact, "artifacts"),
        (harm_journal, "journal"),
        (harm_record, "records"),
        (harm_seal, "held-out suite"),
        (harm_facts, "campaign"),
        (harm_base, "base"),
        (harm_ledger, "spend ledger"),
    ],
)
def test_doctor_names_what_is_broken_and_its_fix(
    harm: Callable[[Path], None], row: str, copy: Path, run: Run
) -> None:
    assert {r["state"] for r in run("doctor", copy, "--json")} <= {"ok", "warn"}
    harm(copy)
    rows = run("doctor", copy, "--json", code=1)
    failed = {r["name"]: r for r in rows if r["state"] == "fail"}
    assert set(failed) == {row} and failed[row]["fix"] and failed[row]["seen"], rows


def test_doctor_without_a_campaign_checks_the_installation(run: Run, tmp_path: Path) -> None:
    rows = run("doctor", "--json")
    assert {"python", "torch", "lab base", "settings", "disk space"} <= {r["name"] for r in rows}
    assert all(r["state"] != "fail" for r in rows)
    assert "no campaign folder" in run("doctor", tmp_path / "nowhere", code=2)


@pytest.mark.slow
def test_a_multirun_runs_each_combination_and_names_what_failed(tmp_path):
    wanted = [o for o in TINY if not o.startswith("campaign.seeds")]
    done = run_cli("run", "-m", *wanted, "campaign.seeds=[0]", "campaign.rounds=0", "lab.seed=0,1",
                   "--out", str(tmp_path / "grid"))  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in (tmp_path / "grid").iterdir() if not p.name.startswith(".")) == [
        "0-lab.seed=0", "1-lab.seed=1",
    ]  # fmt: skip
    (tmp_path / "grid" / "1-lab.seed=1" / "campaign.json").write_text("{}")
    again = run_cli("run", "-m", *wanted, "campaign.seeds=[0]", "campaign.rounds=0", "lab.seed=0,1",
                    "--out", str(tmp_path / "grid"))  # fmt: skip
    assert again.returncode == 1 and "failed: 1-lab.seed=1" in again.stderr and "1 of 2" in again.stderr
