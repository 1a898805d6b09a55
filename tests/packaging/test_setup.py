"""Set-up: pins fit the ranges, no registry is named, and the script survives broken interpreters."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]

# Stands in for an interpreter: says yes to the version check, makes a venv whose python logs pip's arguments.
FAKE_PYTHON = """#!/bin/sh
case "$1 $2" in
  "-m venv") mkdir -p "$3/bin"; cp "$0" "$3/bin/python";;
  "-m pip") shift 2; echo "$@" >> "$LOG"; [ -z "${FAIL:-}" ];;
  "--version "*) echo "Python 3.12.0";;
esac
"""


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return {
        canonicalize_name(name): version
        for name, _, version in (line.partition("==") for line in lines if line and line[0] != "#")
    }


def test_every_dependency_is_pinned_inside_its_range() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [Requirement(r) for r in [*project["dependencies"], *project["optional-dependencies"]["dev"]]]
    for requirement in wanted:
        if requirement.name == project["name"]:
            continue  # an extra that takes in another one
        pin = pins().get(canonicalize_name(requirement.name))
        assert pin is not None, requirement.name
        assert requirement.specifier.contains(pin), (str(requirement), pin)


def test_no_file_names_a_registry_host() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    # Split so that this file does not name them itself.
    hosts = re.compile(
        "|".join(["pypi" + r"\.org", "python" + r"hosted\.org", "download" + r"\.pytorch\.org"])
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        path = ROOT / name
        if path.is_file() and path.suffix not in (".safetensors", ".parquet"):
            assert not hosts.search(path.read_text(encoding="utf-8", errors="replace")), name


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with the set-up script and an interpreter that only pretends."""
    folder = tmp_path / "check out"
    (folder / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "set_up.sh", folder / "scripts")
    for name in ("pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    (folder / "bin").mkdir()
    add_program(folder / "bin" / "python3.12", FAKE_PYTHON)
    add_program(folder / "bin" / "python3.11", "#!/bin/sh\necho 'shim: no such version' >&2\nexit 127\n")
    return folder


def add_program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def set_up(checkout: Path, **environment: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    log = checkout / "pip.log"
    log.unlink(missing_ok=True)
    clean = {
        "PATH": f"{checkout / 'bin'}:/usr/bin:/bin",
        "HOME": "/nonexistent",
        "LOG": str(log),
        **environment,
    }
    script = str(checkout / "scripts" / "set_up.sh")
    done = subprocess.run(
        [script, ".venv"], env=clean, capture_output=True, text=True, timeout=60, check=False
    )
    return done, log.read_text().splitlines() if log.exists() else []


def test_a_broken_shim_is_passed_over_and_torch_goes_first(checkout: Path) -> None:
    done, calls = set_up(checkout)
    assert done.returncode == 0, done.stderr
    assert "Python 3.12.0" in done.stdout
    assert (
        len(calls) == 2 and calls[0].endswith(f"torch=={pins()['torch']}") and calls[1].endswith("-e .[dev]")
    )
    assert all("-c constraints.txt" in call for call in calls)


def test_nothing_is_installed_twice_and_changes_are_seen(checkout: Path) -> None:
    set_up(checkout)
    assert set_up(checkout)[1] == []
    with (checkout / "constraints.txt").open("a") as stream:
        stream.write("# changed\n")
    assert len(set_up(checkout)[1]) == 2
    (checkout / ".venv" / "bin" / "python").write_text("not a program")
    done, calls = set_up(checkout)
    assert len(calls) == 2 and "new environment" in done.stdout, "a broken environment is made anew"


def test_a_failed_installation_is_tried_again(checkout: Path) -> None:
    done, _ = set_up(checkout, FAIL="1")
    assert done.returncode != 0
    assert len(set_up(checkout)[1]) == 2


def test_an_unusable_interpreter_is_named(checkout: Path) -> None:
    done, calls = set_up(checkout, PYTHON=str(checkout / "bin" / "python3.11"))
    assert done.returncode == 2 and "python3.11 does not run" in done.stderr and not calls


def test_make_passes_settings_through() -> None:
    if shutil.which("make") is None:
        pytest.skip("no make on this machine")
    command = ["make", "-n", "run", "lab.seed=3", "campaign.name=it is", "OUT=runs/x y"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    last = done.stdout.strip().splitlines()[-1]
    assert (
        "autosft run --out 'runs/x y'" in last and "'lab.seed=3'" in last and "'campaign.name=it is'" in last
    )
