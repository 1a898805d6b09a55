"""Small real campaigns for tests: the shipped base, a few hundred rows, a few training steps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

TINY = (
    "campaign.name=tiny",
    "campaign.rounds=2",
    "campaign.seeds=0,1",
    "campaign.claim_seeds=1",
    "campaign.budget_tokens=4000",
    "lab.rows=300",
    "lab.prompts_per_leaf=2",
    "generate.max_new_tokens=16",
    "holdout.seed=5",
)


def command(out: Path, *overrides: str) -> list[str]:
    """Return the command line of a tiny campaign; later overrides win."""
    return [sys.executable, "-m", "autosft", "run", *TINY, *overrides, "--out", str(out)]


def run_cli(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command and return what it printed."""
    environment = {**os.environ, "NO_COLOR": "1"}
    return subprocess.run(
        [sys.executable, "-m", "autosft", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env=environment,
        timeout=600,
    )


def journal(out: Path) -> list[tuple[str, str, str]]:
    """Return (kind, key, sha) of every journal entry; wall times are no part of it."""
    lines = (out / "journal.jsonl").read_text().splitlines()
    return [(e["kind"], e["key"], e["sha"]) for e in map(json.loads, lines)]


def completions(out: Path) -> list[tuple[str, str]]:
    """Return (kind, fingerprint) of every step that was ever finished in a campaign."""
    from autosft.artifacts import ArtifactStore

    return ArtifactStore(out / "artifacts").completions()
