"""One rank of a run, started by torchrun: `python -m autosft.executor.train.megatron.rank JOB.json`.

The loop is Megatron-Core's own: its schedules, distributed data parallelism, vocabulary-parallel loss and
optimiser. The gradient of a step is that of the summed loss over its loss tokens, on all ranks together.
"""

from __future__ import annotations

import math
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from autosft.executor.base import check_base
from autosft.executor.builds import TrainingSet, read_training_set
from autosft.executor.failure import NonFiniteLossError, cause_of
from autosft.executor.progress import ProgressWriter
from autosft.executor.train.agreement import learning_rate
from autosft.executor.train.ledger import Ledger
from autosft.executor.train.megatron import cpu_shim
from autosft.executor.train.megatron.batches import MicroBatch, step_batches
from autosft.executor.train.megatron.job import PEER_LOST, RankJob, load_build, read_job
from autosft.executor.train.megatron.limit import limit_memory
from autosft.executor.train.megatron.shape import read_shape
from autosft.executor.worker import die_with
from autosft.types import TrainSettings

if TYPE_CHECKING:
    import torch

_PEER_PHRASES = ("connection closed by peer", "connection reset", "broken pipe", "remote process exited")

#: (step, part, rows, tokens, loss tokens, loss sums) of one micro-batch.
_Fed = tuple[int, int, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]


def main(arguments: list[str]) -> int:
    """Train; 0 on success, 1 if this rank's error file says why not."""
    job = read_job(Path(arguments[0]))
    # torchrun's process started this one; it must not outlive it.
    die_with(os.getppid())
    rank = int(os.environ.get("RANK", "0"))
    try:
        _run(job)
    except Exception as error:
        # The boundary of the process: the launcher's worker reads the reason, the traceback goes to the log.
        traceback.print_exc()
        text = " ".join(str(error).split()) or type(error).__name__
        lost = any(phrase in text.lower() for phrase in _PEER_PHRASES)
        job.write_error(rank, PEER_LOST if lost else cause_of(error), text[:400])
        return 1
    return 0


def _run(job: RankJob) -> None:
    on_cpu = cpu_shim.install()
    import torch

    if not on_cpu:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.distributed.init_process_group(
        "gloo" if on_cpu else "nccl", timeout=timedelta(seconds=max(30.0, job.settings.timeout_s))
    )
    try:
        _Run(job).train()
        torch.distributed.barrier()
    finally:
        torch.distributed.destroy_process_group()


class _Run:
    """A rank's model, optimiser and part of the data."""

    def __init__(self, job: RankJob) -> None:
        import torch
        from megatron.core import parallel_state
        from megatron.core.tensor_parallel import model_parallel_cuda_manual_seed

        from autosft.executor.train.megatron.model import build_model, load_weights, uses_engine

        self.job, self.settings = job, job.settings
        parallel_state.initialize_model_parallel(job.settings.tensor_parallel, job.settings.pipeline_parallel)
        torch.manual_seed(job.seed)
        model_parallel_cuda_manual_seed(job.seed)
        base = check_base(job.base)
        self.shape = read_shape(base)
        self.engine = uses_engine()
        self.device = (
            torch.device("cuda", torch.cuda.current_device()) if _has_cuda() else torch.device("cpu")
        )
        self.config, self.bare = build_model(self.shape, job.settings, engine=self.engine)
        load_weights(self.bare, base, self.shape)
        self.model, self.optimiser = _wrap(self.config, self.bare, job.settings)
        self.data = read_training_set(load_build(job), job.seed)
        self.dp_rank = parallel_state.get_data_parallel_rank()
        self.last_stage = bool(parallel_state.is_pipeline_last_stage())
        self.counts_loss = self.last_stage and parallel_state.get_tensor_model_parallel_rank() == 0
        self.leads = self.counts_loss and self.dp_rank == 0
        limit_memory(self.device)
        self.fed: list[_Fed] = []
        self.rates: list[tuple[float, float]] = []

    def train(self) -> None:
        """Follow the plan, then write tables, totals and weights."""
        progress = ProgressWriter(self.job.progress) if self.leads else None
        start = mark = time.perf_counter()
        tokens = 0
        for step in range(self.data.steps):
            lr = learning_rate(step, self.data.steps, self.settings)
            loss, norm, n_tokens = self._step(step, lr)
            tokens += n_tokens
            if progress and (step % self.settings.log_every_steps == 0 or step == self.data.steps - 1):
                now = time.perf_counter()
                rate, mark, tokens = round(tokens / max(now - mark, 1e-9), 1), now, 0
                progress.write(
                    {"step": step + 1, "steps": self.data.steps, "loss": loss, "tokens_per_s": rate}
                )
            _require_finite(loss, norm, step, self.data.steps, self.job)
        seconds = time.perf_counter() - start
        if self.settings.overlap and self.settings.distributed_optimizer:
            # With overlapped gathering the last update has not reached this rank's weights yet.
            self.model.start_param_sync(force_sync=True)
        self._write_tables(seconds)
        self._write_weights()

    def _step(self, step: int, lr: float) -> tuple[float, float, int]:
        """Do one optimiser step; return (mean loss, gradient norm before clipping, tokens of all ranks)."""
        import torch
        from megatron.core.pipeline_parallel import get_forward_backward_func

        batches = step_batches(
            self.data,
            step,
            rank=self.dp_rank,
            ranks=self.settings.data_parallel,
            most_tokens=self.job.most_tokens,
            align=_alignment(self.settings),
        )
        self.model.zero_grad_buffer()
        self.optimiser.zero_grad()
        forward = partial(_forward, device=self.device, engine=self.engine)
        outputs = get_forward_backward_func()(
            forward_step_func=forward,
            data_iterator=iter(batches),
            model=[self.model],
            num_microbatches=len(batches),
            seq_length=batches[0].ids_1T.shape[1],
            micro_batch_size=1,
            forward_only=False,
        )
        for group in self.optimiser.param_groups:
            group["lr"] = lr
            group["weight_decay"] = self.settings.weight_decay * group["wd_mult"]
        _, norm, _ = self.optimiser.step()
        sums = torch.zeros(2, dtype=torch.float64, device=self.device)
        if self.counts_loss:
            for batch, output in zip(batches, outputs, strict=True):
                fed = _account(step, batch, output["losses"])
                self.fed.append(fed)
                sums[0] += float(fed[5].sum())
                sums[1] += float(fed[4].sum())
        torch.distributed.all_reduce(sums)
        self.rates.append((lr, float(norm)))
        return float(sums[0]) / max(1.0, float(sums[1])), float(norm), _step_tokens(self.data, step)

    def _write_tables(self, seconds: float) -> None:
        import orjson
        import torch
        from megatron.core import parallel_state

        if not self.counts_loss:
            return
        group = parallel_state.get_data_parallel_group()
        gathered: list[Any] = [None] * self.settings.data_parallel
        torch.distributed.all_gather_object(gathered, self.fed, group=group)
        if not self.leads:
            return
        ledger = Ledger(self.data)
        for step, _, *fed in sorted((f for fs in gathered for f in fs), key=lambda f: (f[0], f[1])):
            if len(fed[0]):
                ledger.consume(step, *fed)
        for lr, norm in self.rates:
            ledger.stepped(lr, norm)
        totals = ledger.write(Path(self.job.folder))
        self.job.totals.write_bytes(orjson.dumps({"totals": totals, "train_s": seconds}))

    def _write_weights(self) -> None:
        from megatron.core import parallel_state
        from safetensors.torch import save_file

        from autosft.executor.train.megatron.model import stage_state

        if self.dp_rank == 0:
            state = stage_state(self.bare, self.shape)
            if parallel_state.get_tensor_model_parallel_rank() == 0:
                stage = parallel_state.get_pipeline_model_parallel_rank()
                save_file(state, str(self.job.stage_weights(stage)), metadata={"format": "pt"})


def _wrap(config: Any, model: Any, settings: TrainSettings) -> tuple[Any, Any]:
    """Return (the model under Megatron's data parallelism, its optimiser), tied to the configuration."""
    import torch
    from megatron.core.distributed import (
        DistributedDataParallel,
        DistributedDataParallelConfig,
        finalize_model_grads,
    )
    from megatron.core.optimizer import (
        OptimizerConfig,
        get_megatron_optimizer,
        get_standard_config_overrides,
    )
    from megatron.core.transformer.module import Float16Module

    half = settings.dtype == "bfloat16"
    gather_later = settings.overlap and settings.distributed_optimizer
    ddp = DistributedDataParallelConfig(
        grad_reduce_in_fp32=True,
        overlap_grad_reduce=settings.overlap,
        overlap_param_gather=gather_later,
        use_distributed_optimizer=settings.distributed_optimizer,
    )
    wrapped = DistributedDataParallel(config, ddp, Float16Module(config, model) if half else model)
    plan = OptimizerConfig(
        optimizer="adam",
        lr=settings.lr,
        min_lr=settings.min_lr,
        weight_decay=settings.weight_decay,
        adam_beta1=settings.beta1,
        adam_beta2=settings.beta2,
        adam_eps=1e-8,
        clip_grad=settings.clip_norm,
        bf16=half,
        params_dtype=torch.bfloat16 if half else torch.float32,
        use_distributed_optimizer=settings.distributed_optimizer,
        overlap_param_gather=gather_later,
    )
    # Without these, norms and biases would decay as matrices do; each group carries its factor, `wd_mult`.
    optimiser = get_megatron_optimizer(plan, [wrapped], get_standard_config_overrides(plan))
    config.finalize_model_grads_func = finalize_model_grads
    config.grad_scale_func = optimiser.scale_loss
    config.no_sync_func = wrapped.no_sync if settings.overlap else None
    return wrapped, optimiser


def _forward(
    batches: Iterator[MicroBatch], model: Any, *, device: torch.device, engine: bool
) -> tuple[torch.Tensor, Callable[[torch.Tensor], Any]]:
    """Megatron's forward step: one micro-batch through this pipeline stage."""
    batch = next(batches).to(device)
    mask: torch.Tensor | None = batch.blocked_11TT()
    packed = None
    if engine:
        from megatron.core.packed_seq_params import PackedSeqParams

        starts = batch.row_starts().to(device)
        longest = int((starts[1:] - starts[:-1]).max())
        mask, packed = (
            None,
            PackedSeqParams("thd", starts, starts, max_seqlen_q=longest, max_seqlen_kv=longest),
        )
    output = model(batch.ids_1T, batch.positions_1T, mask, labels=batch.labels_1T, packed_seq_params=packed)

    def loss(losses_1T: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, dict[str, torch.Tensor]]:
        import torch

        weighted = losses_1T.float() * batch.loss_mask_1T
        n_targets = batch.loss_mask_1T.sum().to(torch.int)
        return weighted.sum(), n_targets, {"losses": weighted.detach()}

    return output, loss


def _account(step: int, batch: MicroBatch, losses_1T: torch.Tensor) -> _Fed:
    """Sum a micro-batch's losses by row, in doubles."""
    supervised = batch.loss_mask_1T[0].cpu().numpy() > 0
    rows = batch.row_T.cpu().numpy()[supervised]
    losses = losses_1T[0].cpu().numpy().astype(np.float64)[supervised]
    n = len(batch.rows)
    sums = np.bincount(rows, weights=losses, minlength=n).astype(np.float64)
    counts = np.bincount(rows, minlength=n).astype(np.int64)
    return step, batch.part, batch.rows, batch.lengths, counts, sums


def _step_tokens(data: TrainingSet, step: int) -> int:
    rows = data.order[int(data.step_starts[step]) : int(data.step_starts[step + 1])]
    return int((data.offsets[rows + 1] - data.offsets[rows]).sum())


def _require_finite(loss: float, norm: float, step: int, steps: int, job: RankJob) -> None:
    if not (math.isfinite(loss) and math.isfinite(norm)):
        what = "loss" if not math.isfinite(loss) else "gradient"
        raise NonFiniteLossError(
            f"{what} is not finite at step {step + 1} of {steps}",
            where=f"seed {job.seed}",
            hint=f"lower the learning rate ({job.settings.lr:g}) or use float32",
        )


def _alignment(settings: TrainSettings) -> int:
    """Sequence parallelism cuts a micro-batch's tokens evenly over the tensor-parallel ranks."""
    return math.lcm(64, settings.tensor_parallel)


def _has_cuda() -> bool:
    import torch

    return torch.cuda.is_available()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
