"""The artifact store: whole or absent, named by inputs, damage noticed."""

import os
import subprocess
import sys

import pytest

from autosft.artifacts import RECORD, ArtifactStore
from autosft.errors import ArtifactError, CorruptRecordError


def _make(store, key="k", text="x"):
    with store.create("step", key, {"a": 1}) as step:
        (step.path / "out.txt").write_text(text)
        step.data = {"score": 0.5}
        step.measured = {"wall_s": 1.0}
    return store.load("step", key)


def test_a_step_appears_whole(tmp_path):
    store = ArtifactStore(tmp_path)
    made = _make(store)
    assert made.data == {"score": 0.5} and made.file("out.txt").read_text() == "x"
    with pytest.raises(ArtifactError, match="no file named 'other'"):
        made.file("other")


def test_a_step_that_raises_leaves_nothing(tmp_path):
    store = ArtifactStore(tmp_path)
    with pytest.raises(ValueError), store.create("step", "k") as step:
        (step.path / "half.txt").write_text("half")
        raise ValueError
    assert store.find("step", "k") is None
    assert not list((tmp_path / "staging").iterdir())


def test_the_first_of_two_equal_steps_wins(tmp_path):
    store = ArtifactStore(tmp_path)
    _make(store, text="first")
    assert store.completions() == [("step", "k")]
    assert _make(store, text="second").file("out.txt").read_text() == "first"
    assert store.completions() == [("step", "k")] * 2, "work done twice must show"


def test_damage_is_noticed_set_aside_and_recomputed(tmp_path):
    store = ArtifactStore(tmp_path)
    made = _make(store)
    record = made.path / RECORD
    record.write_bytes(record.read_bytes().replace(b"0.5", b"0.9"))
    with pytest.raises(CorruptRecordError, match="own hash"):
        store.load("step", "k")
    assert store.find("step", "k") is None
    assert list((tmp_path / "quarantine").iterdir())
    assert _make(store).data == {"score": 0.5}


def test_a_changed_file_is_noticed_on_request(tmp_path):
    store = ArtifactStore(tmp_path)
    made = _make(store)
    made.file("out.txt").write_text("changed")
    store.load("step", "k")
    with pytest.raises(CorruptRecordError):
        store.load("step", "k", check_files=True)
    made.file("out.txt").unlink()
    with pytest.raises(CorruptRecordError):
        store.load("step", "k")


def test_sweep_removes_leftovers_of_dead_processes_only(tmp_path):
    store = ArtifactStore(tmp_path)
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    for pid in (dead.pid, os.getpid()):
        (tmp_path / "staging" / f"step-k-{pid}-1").mkdir(parents=True)
    store.sweep()
    assert [p.name for p in (tmp_path / "staging").iterdir()] == [f"step-k-{os.getpid()}-1"]
