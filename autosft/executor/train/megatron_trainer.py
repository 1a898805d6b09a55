"""Trains a base on a build with Megatron-Core under torchrun: data, tensor and pipeline parallel ranks.

The worker launches the ranks, passes their progress on, and puts the pipeline stages' weights together into
the same files the torch trainer writes. Batches, learning rate, clipping and weight decay are the torch
trainer's, so that losses agree to rounding. On CUDA it is untested here.

Source: Megatron-LM, arXiv:1909.08053 (tensor parallelism), arXiv:2104.04473 (pipeline schedules).
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from autosft.errors import BaseModelError, ConfigError, ExecutorError
from autosft.executor.base import verify_fingerprint
from autosft.executor.builds import read_training_set
from autosft.executor.failure import (
    BAD_MODEL,
    NON_FINITE,
    OUT_OF_MEMORY,
    NonFiniteLossError,
    RankLostError,
    RankMemoryError,
    kernel_oom_kills,
)
from autosft.executor.progress import ProgressReader
from autosft.executor.train import Report, TrainJob, TrainResult
from autosft.executor.train.agreement import require_plan, require_vocab
from autosft.executor.train.megatron.job import PEER_LOST, RankJob
from autosft.executor.train.megatron.memory import device_flops, estimate, require_room
from autosft.executor.train.megatron.shape import DecoderShape, check_parallel, read_shape

VERSION = 2

_POLL_S = 0.1


def train(job: TrainJob, report: Report) -> TrainResult:
    """Train from the base and write weights and tables into `job.folder`.

    Args:
        job: What to train.
        report: Called with step, steps, loss, tokens_per_s every `log_every_steps`.

    Raises:
        BaseFingerprintError: The base is not the one expected (I1).
        BaseModelError: The base's architecture cannot be mapped, or its weights cannot be loaded.
        ConfigError: Megatron-Core is not installed, or the parallel sizes do not divide the model.
        ArtifactError: The build is unusable.
        NonFiniteLossError: Loss or gradient became infinite or NaN.
        RankLostError: A rank ended without a reason.
        RankMemoryError: Memory did not suffice for micro-batches of one row.
        ExecutorError: A rank failed, or memory cannot suffice by computation.
    """
    require_megatron()
    data = read_training_set(job.build, job.seed)
    verify_fingerprint(job.base.path, job.base_fingerprint)
    shape = read_shape(job.base)
    check_parallel(shape, job.settings)
    require_vocab(job, data)
    most_tokens = job.forward_tokens or job.settings.micro_batch_tokens or _default_tokens()
    memory = estimate(shape, job.settings, most_tokens)
    require_room(memory)
    done, most_tokens = _train_halving(job, most_tokens, int(np.diff(data.offsets).max()), report)
    extra = {"micro_batch_tokens": most_tokens, "memory_estimate_bytes": memory.per_rank_bytes}
    return TrainResult(done["totals"], {**_measured(done, shape, job), **extra})


def _train_halving(
    job: TrainJob, most_tokens: int, longest: int, report: Report
) -> tuple[dict[str, Any], int]:
    """Train; after a lack of memory again with micro-batches half as large, down to the longest row.

    More micro-batches are accumulated then: batches, tokens and steps stay as planned.

    Returns:
        (what the ranks left, tokens of a micro-batch that sufficed).
    """
    while True:
        try:
            return _train_once(job, most_tokens, report), most_tokens
        except RankMemoryError:
            if most_tokens <= longest:
                raise
            half = max(longest, most_tokens // 2)
            note = f"out of memory with {most_tokens} tokens a micro-batch; trying again with {half}"
            report({"step": 0, "steps": 0, "note": note})
            most_tokens = half


def _train_once(job: TrainJob, most_tokens: int, report: Report) -> dict[str, Any]:
    """Run the ranks and put what they left into place."""
    scratch = job.folder / ".ranks"
    scratch.mkdir()
    try:
        ranks = RankJob(
            base=str(job.base.path.absolute()),
            build=str(job.build.path.absolute()),
            key=job.build.fingerprint,
            files=dict(job.build.files),
            seed=job.seed,
            settings=job.settings,
            most_tokens=most_tokens,
            folder=str(job.folder.absolute()),
            scratch=str(scratch.absolute()),
            parent=os.getpid(),
        )
        _launch(ranks, report)
        done: dict[str, Any] = orjson.loads(ranks.totals.read_bytes())
        require_plan(job, done["totals"])
        _join_stages(ranks, job.folder / "model.safetensors")
        return done
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def require_megatron() -> None:
    """Refuse to go on without Megatron-Core.

    Raises:
        ConfigError: It is not installed.
    """
    try:
        found = importlib.util.find_spec("megatron.core") is not None
    except ModuleNotFoundError:
        found = False
    if not found:
        raise ConfigError(
            "Megatron-Core is not installed",
            where="trainer.backend",
            hint="pip install 'autosft[megatron]', or trainer.backend=torch",
        )


def _default_tokens() -> int:
    """Most tokens of a micro-batch: the CPU's attention mask is a square of them."""
    from autosft.executor.models import pick_device

    return 8192 if pick_device() == "cuda" else 1024


def _launch(job: RankJob, report: Report) -> None:
    """Run torchrun to its end, passing progress lines on.

    Raises:
        ExecutorError: A rank failed; the class says how.
    """
    command = [sys.executable, "-P", "-m", "autosft.executor.train.megatron.launch", str(job.write())]
    environment = {
        **os.environ,
        # Ranks are started by torchrun without -P: the working directory must not shadow packages.
        "PYTHONSAFEPATH": "1",
        # Compiling small fused kernels takes longer than it saves, and needs a C compiler.
        "TORCHDYNAMO_DISABLE": os.environ.get("TORCHDYNAMO_DISABLE", "1"),
        "CUDA_DEVICE_MAX_CONNECTIONS": os.environ.get("CUDA_DEVICE_MAX_CONNECTIONS", "1"),
    }
    kills_before = kernel_oom_kills()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment)
    reader = ProgressReader(job.progress)
    try:
        while process.poll() is None:
            time.sleep(_POLL_S)
            for line in reader.new_lines():
                report(line)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    for line in reader.new_lines():
        report(line)
    if process.returncode != 0:
        raise _failure(job.errors(), process.returncode, kernel_oom_kills() - kills_before)


def _failure(errors: list[dict[str, Any]], code: int, oom_kills: int = 0) -> ExecutorError | BaseModelError:
    """Choose the reason among what the ranks left: one that broke, not those that lost it."""
    own = [error for error in errors if error["kind"] != PEER_LOST]
    if not own and oom_kills > 0:
        return RankMemoryError("the kernel ended a rank for lack of memory")
    if not own:
        lost = f"{len(errors)} others lost it" if errors else "none left a reason"
        return RankLostError(f"a rank ended without a reason ({lost}; torchrun's code {code})")
    first = own[0]
    kinds: Mapping[str, type[ExecutorError | BaseModelError]] = {
        NON_FINITE: NonFiniteLossError,
        BAD_MODEL: BaseModelError,
        OUT_OF_MEMORY: RankMemoryError,
    }
    return kinds.get(first["kind"], ExecutorError)(first["text"], where=f"rank {first['rank']}")


def _join_stages(job: RankJob, path: Path) -> None:
    """Put the pipeline stages' weights into one file."""
    from safetensors.torch import load_file, save_file

    files = [job.stage_weights(stage) for stage in range(job.settings.pipeline_parallel)]
    if len(files) == 1:
        files[0].replace(path)
        return
    state: dict[str, Any] = {}
    for file in files:
        state.update(load_file(str(file)))
    save_file(state, str(path), metadata={"format": "pt"})


def _measured(done: Mapping[str, Any], shape: DecoderShape, job: TrainJob) -> dict[str, Any]:
    seconds, tokens = float(done["train_s"]), int(done["totals"]["train_tokens"])
    rate = tokens / max(seconds, 1e-9)
    per_device = rate / job.settings.ranks
    peak = device_flops(job.settings.dtype)
    # Forward and backward take about six operations a weight and token; attention's own are left out.
    mfu = {"mfu": round(6.0 * shape.parameters * per_device / peak, 4)} if peak else {}
    return {
        "train_s": seconds,
        "tokens_per_s": rate,
        "tokens_per_s_device": per_device,
        "ranks": job.settings.ranks,
        **mfu,
    }
