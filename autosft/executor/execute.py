"""Runs a build for several seeds: one worker process each, some side by side, failures classified.

A failed seed becomes a receipt, never an exception. What a worker finished before it died is kept and found
by the next attempt.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from autosft.artifacts import Artifact, ArtifactStore
from autosft.errors import ConfigError
from autosft.executor.base import check_base, verify_fingerprint
from autosft.executor.builds import plan_sha
from autosft.executor.failure import OUT_OF_MEMORY, RETRIED
from autosft.executor.jobs import JobQueue
from autosft.executor.jobs.worker import QueuedWorker
from autosft.executor.processes import Worker
from autosft.executor.prompts import items_sha, make_prompts
from autosft.executor.stages import STAGES, Job, finished, log_stem, receipt
from autosft.types import Event, GenerateSettings, SeedReceipt, TrainSettings

_POLL_S = 0.1
#: After a lack of memory: most tokens of one forward pass, halved once more each time.
_LOW_MEMORY_TOKENS = 1024

OnEvent = Callable[[Event], None]
AnyWorker = Worker | QueuedWorker


def execute(
    base: Path | str,
    base_fingerprint: str,
    build: Artifact,
    items_path: Path,
    seeds: Sequence[int],
    train: TrainSettings,
    generate: GenerateSettings,
    store: ArtifactStore,
    slots: int = 1,
    on_event: OnEvent | None = None,
    *,
    retries: int = 1,
    threads: int = 1,
    logs: Path | None = None,
    forward_tokens: int = 0,
    queue: JobQueue | None = None,
) -> list[SeedReceipt]:
    """Train, convert, generate and score a build, once a seed.

    Args:
        base: The base's folder.
        base_fingerprint: What the base must be (I1).
        build: An artifact of kind `build` with a plan for every seed.
        items_path: Evaluation items (JSONL).
        seeds: Training seeds, each once.
        train: Training settings.
        generate: Generation settings.
        store: Where the stages' artifacts go.
        slots: Workers side by side, at least 1.
        on_event: Gets progress, one `seed_done` a seed and notes about retries.
        retries: Further attempts after a killed, timed-out or memory-starved worker, at least 0.
        threads: Compute threads of a worker. One makes results independent of the load of the machine.
        forward_tokens: Most tokens of a forward pass, 0 for the model's own; the optimiser's batches stay.
        logs: Folder for workers' specs, progress and logs; `logs` beside the store's artifacts if None.
        queue: Run the seeds as jobs of a durable queue, which has slots of its own; None: as children of this
            process, which end with it.

    Returns:
        One receipt a seed, in the order of `seeds`; a failed seed has status `failed` and a cause.

    Raises:
        BaseFingerprintError: The base is not the one expected; nothing was started.
        BaseModelError: The base cannot be used; nothing was started.
        ArtifactError: The build has no plan for a seed; nothing was started.
        SuiteError: The items cannot be read; nothing was started.
        ConfigError: No or repeated seeds, an unknown backend, or a count out of range; nothing was started.
    """
    _check_counts(seeds, slots, retries, threads)
    check_base(base)
    verify_fingerprint(base, base_fingerprint)
    emit = on_event or (lambda event: None)
    folder = logs or store.root / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    store.sweep()
    prompts = make_prompts(Path(base), items_path, train.sequence_tokens, store)
    jobs = [
        Job(
            store=str(store.root.absolute()),
            base=str(Path(base).absolute()),
            base_fingerprint=base_fingerprint,
            build=build.fingerprint,
            plan=plan_sha(build, seed),
            items_path=str(items_path.absolute()),
            items=items_sha(items_path),
            prompts=prompts.fingerprint,
            seed=seed,
            train=train,
            generate=generate,
            forward_tokens=forward_tokens,
        )
        for seed in seeds
    ]
    start = partial(QueuedWorker, queue=queue, retries=retries) if queue is not None else Worker
    slots = len(jobs) if queue is not None else slots
    return _Schedule(jobs, store, folder, slots, retries, threads, emit, start).run()


class _Schedule:
    """Keeps up to `slots` workers going until every job has a receipt."""

    def __init__(
        self,
        jobs: list[Job],
        store: ArtifactStore,
        folder: Path,
        slots: int,
        retries: int,
        threads: int,
        emit: OnEvent,
        start: Callable[[Job, Path, int, int], AnyWorker],
    ) -> None:
        self._start_worker = start
        self._jobs, self._store, self._folder = jobs, store, folder
        self._slots, self._retries, self._threads, self._emit = slots, retries, threads, emit
        self._attempts = {job.seed: 0 for job in jobs}
        self._receipts: dict[int, SeedReceipt] = {}

    def run(self) -> list[SeedReceipt]:
        waiting = [job for job in self._jobs if not self._reuse(job)]
        running: list[AnyWorker] = []
        try:
            while waiting or running:
                while waiting and len(running) < self._slots:
                    running.append(self._start(waiting.pop(0)))
                time.sleep(_POLL_S)
                for worker in list(running):
                    self._report(worker)
                    if worker.ended():
                        running.remove(worker)
                        again = self._finish(worker)
                        if again is not None:
                            waiting.insert(0, again)
        finally:
            # Also on Ctrl-C, SIGTERM turned into an exception, or an error of the listener.
            for worker in running:
                worker.kill()
        return [self._receipts[job.seed] for job in self._jobs]

    def _reuse(self, job: Job) -> bool:
        # Analysts and reports read every stage: a score whose checkpoint or answers were lost is not enough.
        if len(finished(job, self._store)) < len(STAGES):
            return False
        self._done(job, receipt(job, self._store, attempts=0))
        return True

    def _start(self, job: Job) -> AnyWorker:
        self._attempts[job.seed] += 1
        return self._start_worker(job, self._folder / log_stem(job), self._threads, self._attempts[job.seed])

    def _report(self, worker: AnyWorker) -> None:
        for line in worker.new_lines():
            self._emit(Event("progress", _progress_text(line), data=line))

    def _finish(self, worker: AnyWorker) -> Job | None:
        """Book a worker's end; return the job for another attempt, or None."""
        job, attempts = worker.job, self._attempts[worker.job.seed]
        cause, detail = worker.outcome()
        if not cause and "score" not in finished(job, self._store):
            cause, detail = "error", "the worker reported success but left no score"
        if cause in RETRIED and attempts <= self._retries:
            self._emit(
                Event("note", f"seed {job.seed}: {cause} ({detail}); trying again", data={"seed": job.seed})
            )
            return _with_less_memory(job, attempts) if cause == OUT_OF_MEMORY else job
        if cause:
            detail = f"{detail}; log: {worker.log}"
        self._done(job, receipt(job, self._store, attempts, cause, detail))
        return None

    def _done(self, job: Job, result: SeedReceipt) -> None:
        self._receipts[job.seed] = result
        score = result.summary.get("strict")
        state = f"score {score:.3f}" if isinstance(score, float) else result.status
        text = (
            f"seed {job.seed}: {result.cause} ({result.detail})"
            if result.cause
            else f"seed {job.seed}: {state}"
        )
        data: dict[str, Any] = {"seed": job.seed, "status": result.status, "cause": result.cause}
        self._emit(Event("seed_done", text, data={**data, "reused": result.attempts == 0}))


def _with_less_memory(job: Job, attempts: int) -> Job:
    """Smaller forward passes and answer batches; the optimiser's batches, and so the result, stay."""
    used = job.train.micro_batch_tokens or _LOW_MEMORY_TOKENS
    return replace(
        job,
        forward_tokens=max(1, min(_LOW_MEMORY_TOKENS, used) >> (attempts - 1)),
        batch_size=max(1, job.generate.batch_size >> attempts),
    )


def _progress_text(line: dict[str, Any]) -> str:
    if "note" in line:
        return f"seed {line.get('seed')}: {line['note']}"
    text = f"seed {line.get('seed')} {line.get('stage')} {line.get('step')}/{line.get('steps')}"
    loss, rate = line.get("loss"), line.get("tokens_per_s")
    if isinstance(loss, float):
        text += f" loss {loss:.3f}"
    if isinstance(rate, float):
        text += f" {rate:,.0f} tok/s"
    return text


def _check_counts(seeds: Sequence[int], slots: int, retries: int, threads: int) -> None:
    if not seeds or len(set(seeds)) != len(seeds):
        raise ConfigError(f"seeds must be given, each once: {list(seeds)}", where="execute")
    for name, value, least in (("slots", slots, 1), ("retries", retries, 0), ("threads", threads, 1)):
        if value < least:
            raise ConfigError(f"{name} is {value}, the least is {least}", where="execute")
