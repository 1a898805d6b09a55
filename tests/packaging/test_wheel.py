"""An installed wheel works from any folder: settings, prompts and the lab's files are inside."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(ROOT)]
    if importlib.util.find_spec("hatchling"):  # part of the dev extra; without it, pip fetches it
        command.append("--no-build-isolation")
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        "--target",
        str(folder),
    ]
    subprocess.run([*command, str(wheel)], check=True, capture_output=True, timeout=120)
    return folder


def run_installed(site: Path, *argv: str, cwd: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(site)}
    done = subprocess.run(
        argv, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    command = ["git", "ls-files", "-z", "autosft", "conf", "prompts"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout: there is no list of files to compare with")
    tracked = {name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()}
    packed = {
        f"autosft/_{name}" if name.startswith(("conf/", "prompts/")) else name
        for name in tracked
        if not Path(name).name.startswith(".")
    }
    names = set(zipfile.ZipFile(wheel).namelist())
    assert packed <= names, sorted(packed - names)
    assert "autosft/_conf/config.yaml" in names
    assert not any(name.startswith(("tests/", "scripts/", "runs/")) for name in names)


def test_the_installed_command_runs_from_another_folder(site: Path, tmp_path: Path) -> None:
    command = str(site / "bin" / "autosft")
    entries = json.loads(run_installed(site, command, "catalogue", "--json", cwd=tmp_path))
    assert len({entry["family"] for entry in entries}) == 6
    assert run_installed(site, command, "catalogue", cwd=tmp_path).strip()
    assert not list(tmp_path.iterdir()), "reading commands write nothing"


def test_the_installed_package_reads_its_own_settings_and_lab(site: Path, tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "config.yaml").write_text("campaign: {rounds: 999}\n")  # somebody else's
    code = (
        "import autosft, autosft.lab\n"
        "from autosft.config import conf_dir, load_config\n"
        "rounds = load_config(['campaign.rounds=7']).campaign.rounds\n"
        "print(autosft.__file__, conf_dir(), rounds, autosft.lab.base_dir())"
    )
    package, conf, rounds, base = run_installed(site, sys.executable, "-c", code, cwd=tmp_path).split()
    assert Path(package).is_relative_to(site) and Path(conf).is_relative_to(site)
    assert rounds == "7"
    assert Path(base).is_relative_to(site) and (Path(base) / "model.safetensors").stat().st_size > 1_000_000
