"""Trains a base on a build with torch on one device.

AdamW on float32 weights, cosine learning rate with warm-up, gradient clipping; the loss of a step is the mean
over its loss tokens, whatever the number of forward passes it took. One process, one seed, equal results for
equal inputs on one machine with one thread.

Source: AdamW, arXiv:1711.05101; cosine schedule, arXiv:1608.03983, section 3.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from autosft.executor.base import verify_fingerprint
from autosft.executor.builds import TrainingSet, read_training_set
from autosft.executor.failure import NonFiniteLossError
from autosft.executor.models import CausalModel, load_model, pick_device
from autosft.executor.packing import PackedBatch, pack_rows
from autosft.executor.train import Report, TrainJob, TrainResult
from autosft.executor.train.agreement import learning_rate, require_plan, require_vocab
from autosft.executor.train.ledger import Ledger

if TYPE_CHECKING:
    from autosft.executor.train.adamw import AdamW

VERSION = 1


def train(job: TrainJob, report: Report) -> TrainResult:
    """Train from the base and write weights and tables into `job.folder`.

    Args:
        job: What to train.
        report: Called with step, steps, loss, tokens_per_s every `log_every_steps`.

    Raises:
        BaseFingerprintError: The base is not the one expected (I1).
        BaseModelError: The base cannot be loaded.
        ArtifactError: The build is unusable.
        NonFiniteLossError: Loss or gradient became infinite or NaN.
    """
    import torch
    from safetensors.torch import save_file

    from autosft.executor.train.adamw import AdamW

    data = read_training_set(job.build, job.seed)
    verify_fingerprint(job.base.path, job.base_fingerprint)
    torch.manual_seed(job.seed)
    model = load_model(job.base, job.settings.dtype, device=pick_device())
    require_vocab(job, data)
    optimiser = AdamW(*model.optimiser_groups(), job.settings)
    ledger = Ledger(data)
    forward_tokens = job.forward_tokens or model.forward_tokens
    clock = _Clock()
    for step in range(data.steps):
        lr = learning_rate(step, data.steps, job.settings)
        loss, norm, tokens = _step(model, optimiser, ledger, data, step, lr, forward_tokens)
        clock.add(tokens)
        if step % job.settings.log_every_steps == 0 or step == data.steps - 1:
            report({"step": step + 1, "steps": data.steps, "loss": loss, "tokens_per_s": clock.rate()})
        if not (math.isfinite(loss) and math.isfinite(norm)):
            what = "loss" if not math.isfinite(loss) else "gradient"
            raise NonFiniteLossError(
                f"{what} is not finite at step {step + 1} of {data.steps}",
                where=f"seed {job.seed}",
                hint=f"lower the learning rate ({job.settings.lr:g}) or use float32",
            )
    totals = ledger.write(job.folder)
    require_plan(job, totals)
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state().items()}
    save_file(weights, str(job.folder / "model.safetensors"), metadata={"format": "pt"})
    seconds, cpu_seconds = clock.seconds()
    measured = {
        "train_s": seconds,
        "train_cpu_s": cpu_seconds,
        "tokens_per_s": totals["train_tokens"] / seconds,
    }
    return TrainResult(totals, measured)


def forward_passes(
    data: TrainingSet, step: int, forward_tokens: int
) -> Iterator[tuple[NDArray[np.int64], PackedBatch]]:
    """Yield a step's rows, in plan order, cut into passes of at most `forward_tokens` (or one row)."""
    begin, end = int(data.step_starts[step]), int(data.step_starts[step + 1])
    rows = data.order[begin:end].astype(np.int64)
    lengths = data.offsets[rows + 1] - data.offsets[rows]
    first = 0
    while first < len(rows):
        last, total = first + 1, int(lengths[first])
        while last < len(rows) and total + int(lengths[last]) <= forward_tokens:
            total += int(lengths[last])
            last += 1
        part = rows[first:last]
        yield part, pack_rows([data.row_tokens(r) for r in part], [data.row_mask(r) for r in part])
        first = last


def _step(
    model: CausalModel,
    optimiser: AdamW,
    ledger: Ledger,
    data: TrainingSet,
    step: int,
    lr: float,
    forward_tokens: int,
) -> tuple[float, float, int]:
    """Do one optimiser step; return (mean loss, gradient norm before clipping, tokens)."""
    import torch

    passes = list(forward_passes(data, step, forward_tokens))
    n_targets = sum(batch.n_targets for _, batch in passes)
    total, tokens = 0.0, 0
    for rows, batch in passes:
        losses = model.token_losses(batch)
        if batch.n_targets:
            torch.autograd.backward(losses.sum() / n_targets)
        # NumPy's double sums: the same per-row losses whatever the device.
        per_token = losses.detach().cpu().numpy()[: batch.n_targets].astype(np.float64)
        part = batch.part_S.numpy()[: batch.n_targets]
        sums = np.bincount(part, weights=per_token, minlength=len(rows)).astype(np.float64)
        counts = np.bincount(part, minlength=len(rows)).astype(np.int64)
        ledger.consume(step, rows, batch.lengths_P, counts, sums)
        total += float(sums.sum())
        tokens += batch.n_tokens
    norm = optimiser.step(lr)
    ledger.stepped(lr, norm)
    return total / max(1, n_targets), norm, tokens


class _Clock:
    """Tokens a second, over the whole run and lately."""

    def __init__(self) -> None:
        self._start = self._mark = time.perf_counter()
        self._cpu_start = time.process_time()
        self._tokens = 0

    def add(self, tokens: int) -> None:
        self._tokens += tokens

    def rate(self) -> float:
        now = time.perf_counter()
        rate = self._tokens / max(now - self._mark, 1e-9)
        self._mark, self._tokens = now, 0
        return round(rate, 1)

    def seconds(self) -> tuple[float, float]:
        """Wall and processor seconds so far; on a busy machine they differ."""
        return time.perf_counter() - self._start, time.process_time() - self._cpu_start
