"""The command: exit codes, one clear line, nothing written by reading commands."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autosft import cli, meta
from autosft.errors import BudgetError, CampaignError
from autosft.meta import views
from autosft.types import Event
from tests.cli.fixtures import ACTIONS, LEAVES, ROUNDS, STATUS


@pytest.fixture
def campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose views are fixtures: what the commands do with a view, apart from how it is read."""
    folder = tmp_path / "runs" / "lab"
    folder.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(views, "status", lambda out: STATUS)
    monkeypatch.setattr(views, "rounds", lambda out: ROUNDS)
    monkeypatch.setattr(
        views, "taxonomy", lambda out, round=None: [{**leaf, "round": round} for leaf in LEAVES]
    )
    monkeypatch.setattr(views, "actions", lambda out: ACTIONS)
    return folder


def stub_run(monkeypatch: pytest.MonkeyPatch, run: Callable[..., Any]) -> None:
    monkeypatch.setattr(meta, "run_campaign", run)
    monkeypatch.setattr(meta, "resume_campaign", run)


@pytest.mark.parametrize("command", ["status", "rounds", "taxonomy", "actions"])
def test_reading_commands_print_tables_and_json_and_write_nothing(
    command: str, campaign: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(campaign.rglob("*"))
    for argv in ([command], [command, str(campaign)]):
        assert cli.run_command(argv) == 0
        text = capsys.readouterr()
        assert text.out.strip() and not text.err and "\x1b" not in text.out
    assert cli.run_command([command, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data if command == "status" else isinstance(data, list)
    assert sorted(campaign.rglob("*")) == before


def test_taxonomy_of_a_round(campaign: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run_command(["taxonomy", "--round", "2", "--json"]) == 0
    assert [leaf["round"] for leaf in json.loads(capsys.readouterr().out)] == [2, 2]


@pytest.mark.parametrize("command", ["status", "rounds", "taxonomy", "actions"])
def test_no_campaign_is_said_in_one_line(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for argv in ([command], [command, "nowhere"], [command, str(tmp_path)]):
        assert cli.run_command(argv) == 2
        error = capsys.readouterr().err
        assert error.startswith("autosft: ") and error.count("\n") == 1 and "autosft" in error[9:]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["nonsense"], "nonsense"),
        (["run", "--nonsense"], "--nonsense"),
        (["run", "campaign.roundz=3"], "nearest: campaign.rounds"),
        (["run", "pool.path=/no/such/pool"], "/no/such/pool"),
        (["resume"], "DIR"),
        (["taxonomy", "--round", "-1"], "--round"),
    ],
)
def test_wrong_use_is_one_line_and_code_2(
    argv: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.run_command(argv) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1
    assert not list(tmp_path.iterdir()), "nothing is started"


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run_command([]) == 0
    text = capsys.readouterr().out
    for command in ("run", "resume", "status", "rounds", "taxonomy", "actions", "catalogue"):
        assert command in text
    assert cli.run_command(["--version"]) == 0
    assert capsys.readouterr().out.startswith("autosft 0.")


def test_run_follows_the_campaign_and_prints_its_result(
    campaign: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: dict[str, Any] = {}

    def run(config: Any, out: Path, on_event: Callable[[Event], None]) -> None:
        seen.update(rounds=config.campaign.rounds, out=out)
        on_event(Event("round_done", "score .512", 1))

    stub_run(monkeypatch, run)
    assert cli.run_command(["run", "campaign.rounds=2"]) == 0
    text = capsys.readouterr().out
    assert seen == {"rounds": 2, "out": Path("runs/lab")}
    assert "round 1  score .512" in text and "claimed best" in text
    assert cli.run_command(["run", "campaign.name=mine"]) == 0 and seen["out"] == Path("runs/mine")
    assert cli.run_command(["run", "campaign.out=there"]) == 0 and seen["out"] == Path("there")
    assert cli.run_command(["run", "--out", "here", "campaign.out=there"]) == 0 and seen["out"] == Path(
        "here"
    )


def test_errors_of_the_library_are_one_line_without_secrets(
    campaign: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VENDOR_API_KEY", "very-secret-value")

    def refuse(*_: object) -> None:
        raise BudgetError(
            "12 passes, at most 10 \x1b[2J very-secret-value\nnext", where="round 3", hint="add rows"
        )

    stub_run(monkeypatch, refuse)
    assert cli.run_command(["run"]) == 2
    assert (
        capsys.readouterr().err
        == "autosft: round 3: 12 passes, at most 10 [VENDOR_API_KEY] next (add rows)\n"
    )


def test_an_unexpected_fault_names_a_log_and_the_log_holds_no_secret(
    campaign: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VENDOR_API_KEY", "very-secret-value")

    def fail(*_: object) -> None:
        raise RuntimeError("very-secret-value leaked")

    stub_run(monkeypatch, fail)
    assert cli.run_command(["run"]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "RuntimeError" in error and "Traceback" not in error
    log = Path(error.split("traceback in ")[1].rstrip(")\n"))
    text = log.read_text()
    log.unlink()
    assert "Traceback" in text and "in fail" in text and "very-secret-value" not in text + error


def test_a_damaged_view_does_not_hide_behind_a_traceback(
    campaign: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(out: Path) -> None:
        raise CampaignError("journal is damaged", where=str(out))

    monkeypatch.setattr(views, "rounds", broken)
    assert cli.run_command(["rounds"]) == 2
    assert "journal is damaged" in capsys.readouterr().err


SLOW_RUN = """
import sys, time
from autosft import cli, meta
from autosft.types import Event

def run(config, out, on_event):
    on_event(Event("round_start", "started", 1))
    time.sleep(60)

meta.run_campaign = run
cli.main()
"""


def default_signals() -> None:
    """Undo what a shell does to its background jobs: they ignore SIGINT, and SIGHUP under nohup."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)]
)
def test_a_signal_stops_cleanly_and_says_how_to_go_on(number: int, code: int, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_RUN, "run", "campaign.rounds=2", "--out", "my runs"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        preexec_fn=default_signals,  # noqa: PLW1509 - no threads yet
    )
    assert process.stdout is not None
    assert "started" in process.stdout.readline()
    time.sleep(0.2)
    process.send_signal(number)
    _, error = process.communicate(timeout=20)
    assert process.returncode == code
    assert "autosft run campaign.rounds=2 --out 'my runs'" in error
    assert "autosft resume 'my runs'" in error
    assert "jobs were ended" in error and "finished stages are kept" in error and "Traceback" not in error


def test_a_reader_that_leaves_early_is_no_error() -> None:
    script = f"{sys.executable} -m autosft.cli catalogue --json | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == ["[", "0"] and not done.stderr


PRINT_ROUNDS = """
import sys
from autosft import cli
from autosft.meta import views
from tests.cli.fixtures import ROUNDS

views.rounds = lambda out: ROUNDS
cli.main(["rounds", sys.argv[1]])
"""


def test_a_terminal_without_unicode_is_no_error(campaign: Path) -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", PRINT_ROUNDS, str(campaign)],
        cwd=root,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": str(root)},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0 and b".395" in done.stdout, done.stderr
