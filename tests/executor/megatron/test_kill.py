"""kill -9 of a rank, or of torchrun, in mid-training: the run is tried again and ends as if undisturbed."""

from __future__ import annotations

import dataclasses
import time

import psutil
import pytest
from safetensors.torch import load_file

from tests.executor.test_execute import TRAIN, World

pytest.importorskip("megatron.core", reason="needs the extra `megatron`")
pytestmark = pytest.mark.slow

MEGATRON = dataclasses.replace(
    TRAIN, backend="megatron", dtype="float32", data_parallel=2, log_every_steps=1, timeout_s=300
)


def started(folder, sign):
    """Processes of a run below `folder` whose command line holds `sign`."""
    found = []
    for process in psutil.process_iter():
        try:
            line = " ".join(process.cmdline())
        except psutil.Error:
            continue
        if sign in line and str(folder) in line:
            found.append(process)
    return found


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    world = World(tmp_path_factory.mktemp("whole"))
    (receipt,) = world.run((0,), train=MEGATRON)
    assert receipt.status == "ok"
    return load_file(world.store.folder("train", receipt.train.split("/")[-1]) / "model.safetensors")


@pytest.mark.parametrize("sign", ["megatron.rank", "megatron.launch"])
def test_a_killed_process_of_a_run_is_a_second_attempt(undisturbed, tmp_path, sign):
    world, killed = World(tmp_path), []

    def kill_once(event):
        world.events.append(event)
        in_training = event.kind == "progress" and event.data["stage"] == "train" and event.data["step"] >= 2
        if in_training and not killed:
            killed.extend(started(tmp_path, sign))
            killed[0].kill()

    (receipt,) = world.run((0,), train=MEGATRON, on_event=kill_once)
    assert killed, "training was met"
    assert (receipt.status, receipt.attempts) == ("ok", 2), receipt
    end = time.monotonic() + 20
    while started(tmp_path, "megatron.rank") and time.monotonic() < end:
        time.sleep(0.2)
    assert not started(tmp_path, "megatron.rank"), "no rank is left over"
    trained = load_file(world.store.folder("train", receipt.train.split("/")[-1]) / "model.safetensors")
    assert set(trained) == set(undisturbed)
    assert all((trained[name] == undisturbed[name]).all() for name in trained)
