"""Damaged records, full disks, jumping clocks, plain locales, old folders: named, mended, no traceback."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
from pathlib import Path

import pytest

from autosft.memory import CampaignLock
from tests.campaigns import command

pytestmark = pytest.mark.slow
SETTINGS = ("campaign.rounds=1",)


def start(out: Path, *overrides: str, path: Path | None = None, limit: int = 0, **environment: str):
    """Run the tiny campaign, optionally with a module path, a cap on file sizes and other environment."""
    paths = [*([str(path)] if path else []), str(Path(__file__).parents[2])]
    return subprocess.run(
        command(out, *SETTINGS, *overrides),
        env={**os.environ, "NO_COLOR": "1", "PYTHONPATH": os.pathsep.join(paths), **environment},
        preexec_fn=(lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))) if limit else None,
        capture_output=True,
        check=False,
        timeout=600,
    )


def refused(result, *says: str) -> None:
    text = result.stderr.decode("utf-8", "replace")
    assert result.returncode == 2, text
    assert "Traceback" not in text and not text.startswith("autosft: unexpected")
    for part in says:
        assert part in text, text


def facts(out: Path) -> list[tuple[str, str, dict]]:
    lines = map(json.loads, (out / "journal.jsonl").read_text(encoding="utf-8").splitlines())
    return [(e["kind"], e["key"], e["data"]) for e in lines if e["kind"] != "note.quarantined"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("finished") / "tiny"
    result = start(out)
    assert result.returncode == 0, result.stderr.decode()
    return out


@pytest.fixture
def campaign(finished, tmp_path):
    shutil.copytree(finished.parent, tmp_path / "copy")
    return tmp_path / "copy" / "tiny"


def spoil(record: Path) -> None:
    content = record.read_bytes()
    at = content.index(b'"data"') + 1
    record.write_bytes(content[:at] + b"D" + content[at + 1 :])


def test_a_damaged_record_of_every_kind_is_set_aside_and_made_anew(campaign):
    before, spoilt = facts(campaign), []
    for kind in sorted(p for p in (campaign / "artifacts").iterdir() if p.is_dir()):
        records = sorted(kind.glob("*/record.json"))
        if kind.name not in ("staging", "quarantine") and records:
            spoil(records[0])
            spoilt.append(records[0])
    assert {r.parts[-3] for r in spoilt} >= {"round", "decision", "build", "train", "score", "pool", "items"}
    result = start(campaign)
    assert result.returncode == 0, result.stderr.decode()
    assert facts(campaign) == before, "the same campaign again"
    aside = [p.name for p in (campaign / "artifacts" / "quarantine").iterdir()]
    for record in spoilt:
        assert any(name.startswith(f"{record.parts[-3]}-{record.parts[-2]}") for name in aside)
        # A run record is read only while its round is being recorded: nothing asks for it again.
        if record.parts[-3] in ("round", "decision", "build", "train", "score", "pool", "items"):
            assert json.loads(record.read_bytes())["body"]["data"] is not None
    notes = (campaign / "artifacts" / "quarantine" / "notes.txt").read_text()
    assert all(f"{record.parts[-3]}/{record.parts[-2]}" in notes for record in spoilt)


def test_what_an_operator_wrote_is_not_lost_over_a_damaged_record(campaign):
    from autosft.memory import Journal

    Journal(campaign).append("round.invalidated", "1", {"reason": "a test"})
    before = (campaign / "journal.jsonl").read_bytes()
    spoil(next((campaign / "artifacts" / "round").glob("*/record.json")))
    refused(start(campaign), "round.invalidated 1", "backup")
    assert (campaign / "journal.jsonl").read_bytes() == before


def test_a_full_disk_is_said_and_the_campaign_goes_on_once_there_is_room(finished, tmp_path):
    out = tmp_path / "tiny"
    refused(start(out, limit=20_000), "cannot be written", "same command again")
    result = start(out)
    assert result.returncode == 0, result.stderr.decode()
    assert facts(out) == facts(finished)


def test_a_second_process_is_refused_and_told_which_one_works(campaign):
    before = (campaign / "journal.jsonl").read_bytes()
    with CampaignLock(campaign):
        refused(start(campaign), f"process {os.getpid()} is working")
    assert (campaign / "journal.jsonl").read_bytes() == before


def test_a_clock_that_jumps_back_changes_nothing(campaign, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import time\n_now, _ns = time.time, time.time_ns\n"
        "time.time = lambda: _now() - 3e7\ntime.time_ns = lambda: _ns() - 30_000_000_000_000_000\n"
    )
    before = facts(campaign)
    shutil.rmtree(campaign / "artifacts" / "round")
    result = start(campaign, path=tmp_path)
    assert result.returncode == 0, result.stderr.decode()
    assert facts(campaign) == before


def test_a_locale_without_unicode_is_no_obstacle(campaign):
    before = facts(campaign)
    plain = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    result = start(campaign, **plain)
    assert result.returncode == 0, result.stderr
    assert facts(campaign) == before and result.stdout.isascii()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda text: text.replace('"schema": 1', '"schema": 0'), "campaign of schema 0"),
        (lambda text: text[: len(text) // 2], "unreadable"),
        (lambda text: "[]", "unreadable"),
    ],
    ids=["older", "cut", "other"],
)
def test_a_campaign_file_of_another_version_or_damaged_is_refused(campaign, change, says):
    file = campaign / "campaign.json"
    text = file.read_text()
    file.write_text(change(text))
    assert file.read_text() != text
    refused(start(campaign), says, str(file))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    refused(start(tmp_path / "tiny"), "cannot be created")
    refused(start(tmp_path), "cannot be written")
