"""The action and the verifier in CONTRIBUTING.md are picked up and work when they are put where it says."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROBE = """
from autosft.actions import ActionContext, apply_recipe, catalogue, kinds
from autosft.pool import Pool, new_row
from autosft.taxonomy import VERIFIERS, verify
from autosft.types import ActionCall, Recipe, Requirement

class Encoder:
    def counts(self, pool):
        import numpy as np
        return np.ones(len(pool), int), np.ones(len(pool), int)

rows = [new_row("s", [("user", "Hi"), ("assistant", text)]) for text in ("HELLO YOU", "Hello you")]
pool = Pool.from_rows(rows)
recipe = Recipe(pool.fingerprint, (ActionCall("prune/shouting", {}),), 1)
after, [diff] = apply_recipe(recipe, pool, ActionContext(0, Encoder()))
assert [row.response for row in after.rows()] == ["Hello you"]
assert diff.reasons == {"mostly capitals": 1}, diff
assert any(entry["kind"] == "prune/shouting" for entry in catalogue())
need, example = Requirement("lab:no_digit"), VERIFIERS["lab:no_digit"].example
assert verify(need, "", example.passes) and not verify(need, "", example.fails)
"""


def test_the_examples_work_where_they_are_said_to_go(tmp_path):
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    found = re.findall(r"`(autosft/\S+?\.py)` is the \w+ `[^`]+`.*?```python\n(.*?)```", text, re.DOTALL)
    assert len(found) == 2
    ignored = shutil.ignore_patterns("__pycache__", "assets")
    shutil.copytree(ROOT / "autosft", tmp_path / "autosft", ignore=ignored)
    for path, code in found:
        assert not (ROOT / path).exists()
        (tmp_path / path).write_text(code, encoding="utf-8")
    command = [sys.executable, "-c", PROBE]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    files = [str(tmp_path / path) for path, _ in found]
    lint = [sys.executable, "-m", "ruff", "check", "--config", str(ROOT / "pyproject.toml"), *files]
    assert subprocess.run(lint, capture_output=True, check=False).returncode == 0
