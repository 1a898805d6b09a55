"""SIGKILL before and after writes of records: all with AUTOSFT_CRASH_ALL=1, a few kinds of them without.

One campaign meets its targets one after another; each kill hits the process that writes, a worker or the
campaign itself, and the same command is run again. At the end it must equal a campaign that was never killed.
The few are drawn by AUTOSFT_CRASH_SEED (0 without it).
"""

import json
import os
import random
import shutil
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.campaigns import command, completions, journal

pytestmark = pytest.mark.slow

SAMPLED = 6
KILLER = Path(__file__).with_name("killer.py")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Run a campaign undisturbed; return its folder and the moments beside its writes, in order."""
    root = tmp_path_factory.mktemp("whole")
    result = run(root, [])
    assert result.returncode == 0, result.stderr
    return root / "tiny", list(dict.fromkeys((root / "control" / "seen").read_text().splitlines()))


def run(root: Path, targets: list[str]) -> subprocess.CompletedProcess:
    control, path = root / "control", root / "path"
    control.mkdir(exist_ok=True)
    path.mkdir(exist_ok=True)
    shutil.copy(KILLER, path / "sitecustomize.py")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(path), str(Path(__file__).parents[2])]),
        "CRASH_ROOT": str(root),
        "CRASH_CONTROL": str(control),
        "CRASH_TARGETS": "\n".join(targets),
        "NO_COLOR": "1",
    }
    return subprocess.run(
        command(root / "tiny", "campaign.rounds=1", "executor.retries=8"),
        env=environment, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip


def kind_of(moment: str) -> str:
    """`before artifact train/abc` -> `artifact train`; keys differ, kinds repeat."""
    _, what, name = moment.split(" ", 2)
    return f"{what} {name.rsplit('/', 1)[0]}"


def choose(moments: list[str], rng: random.Random) -> list[list[str]]:
    """Return the targets of each campaign to kill."""
    if os.environ.get("AUTOSFT_CRASH_ALL"):
        return apart(moments)
    by_kind: dict[str, list[str]] = {}
    for moment in moments:
        by_kind.setdefault(kind_of(moment), []).append(moment)
    drawn = [rng.choice(by_kind[kind]) for kind in rng.sample(sorted(by_kind), min(SAMPLED, len(by_kind)))]
    return apart(drawn)


def apart(moments: list[str]) -> list[list[str]]:
    """Spread moments over campaigns so that no kill keeps the same campaign from a later target.

    A step's completion line follows its artifact at once and is not written for an artifact that is found, so
    of the moments between the two a campaign meets one. A worker's result file is written after its score and
    not at all where the score is found, so a campaign meets moments of either.
    """
    campaigns: list[list[str]] = []
    taken: list[set[str]] = []
    for moment in moments:
        step = moment.rsplit(" ", 1)[-1]
        mine, others = {step}, {step}
        if step.endswith(".result"):
            mine, others = {step, "result"}, {step, "score"}
        elif not moment.startswith(("after artifact ", "before line completed", "after line completed")):
            mine = others = set()
        elif step.startswith("score/"):
            mine, others = {step, "score"}, {step, "result"}
        place = next((i for i, steps in enumerate(taken) if not steps & others), len(taken))
        if place == len(taken):
            campaigns.append([])
            taken.append(set())
        campaigns[place].append(moment)
        taken[place] |= mine
    return campaigns


def artifacts(folder: Path) -> set[str]:
    found = (folder / "artifacts").glob("*/*/record.json")
    return {f"{p.parts[-3]}/{p.parts[-2]}" for p in found if p.parts[-3] not in ("staging", "quarantine")}


def test_the_writes_of_every_kind_are_met(whole):
    kinds = {kind_of(moment) for moment in whole[1]}
    stored = {name.split("/")[0] for name in artifacts(whole[0])}
    assert {f"artifact {kind}" for kind in stored} <= kinds
    entries = {json.loads(line)["kind"] for line in (whole[0] / "journal.jsonl").read_text().splitlines()}
    assert {f"line journal.jsonl {kind}" for kind in entries} <= kinds
    assert {"file campaign.json", "file config.json"} <= kinds


def test_a_kill_beside_a_write_changes_nothing(whole, tmp_path):
    folder, moments = whole
    seed = int(os.environ.get("AUTOSFT_CRASH_SEED", "0"))
    for number, targets in enumerate(choose(moments, random.Random(seed))):
        check_killed_at(targets, tmp_path / str(number), folder, f"crash seed {seed}: {targets}")


def check_killed_at(targets: list[str], root: Path, whole: Path, where: str) -> None:
    root.mkdir()
    killed = root / "tiny"
    for _ in range(len(targets) + 1):
        result = run(root, targets)
        if result.returncode == 0:
            break
        assert result.returncode == -signal.SIGKILL, f"{where}: {result.stderr[-2000:]}"
    fired = (root / "control" / "fired").read_text().splitlines()
    assert sorted(fired) == sorted(targets), f"{where}: each target is met once"
    assert journal(killed) == journal(whole), where
    assert artifacts(killed) == artifacts(whole), where
    twice = {step: n for step, n in Counter(completions(killed)).items() if n > 1}
    assert not twice, f"{where}: steps done twice: {twice}"
    assert not list((killed / "artifacts" / "staging").glob("*"))
