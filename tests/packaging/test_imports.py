"""Imports stay light: nobody waits seconds for `autosft status`."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = (
    "torch",
    "transformers",
    "datasets",
    "langgraph",
    "mlflow",
    "scipy",
    "pandas",
    "polars",
    "hydra",
    "nltk",
)


def loaded(code: str) -> tuple[float, set[str]]:
    """Return the seconds a fresh interpreter takes for some code, and the top-level modules it loads."""
    script = f"import sys, time; start = time.perf_counter()\n{code}\n"
    script += "print(time.perf_counter() - start); print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    seconds, modules = done.stdout.splitlines()
    return float(seconds), set(modules.split())


@pytest.mark.parametrize(
    "code",
    [
        "import autosft",
        "import autosft.cli",
        "import autosft.config, autosft.report",
        "from autosft import cli; cli.run_command(['status', '/no/such/folder'])",
    ],
)
def test_light_things_load_nothing_heavy(code: str) -> None:
    _, modules = loaded(code)
    assert not modules & set(HEAVY)


def test_the_package_imports_in_a_third_of_a_second() -> None:
    assert min(loaded("import autosft")[0] for _ in range(3)) < 0.3
