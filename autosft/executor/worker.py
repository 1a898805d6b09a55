"""One seed's run in its own process: `python -m autosft.executor.worker SPEC.json`.

Four stages, each an artifact that is skipped where it exists. The outcome goes into the spec's result file;
what the starter may know is paths and a status, nothing of the data.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from autosft.artifacts import Artifact, ArtifactStore, Staging, write_atomic
from autosft.errors import ArtifactError, AutosftError
from autosft.executor.failure import cause_of
from autosft.executor.progress import ProgressWriter
from autosft.executor.stages import STAGES, Job

_PR_SET_PDEATHSIG = 1

Report = Callable[[Mapping[str, Any]], None]


def main(arguments: list[str]) -> int:
    """Run the job of a spec file; 0 if it succeeded, 1 if the result file says why not, 2 for a bad call."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m autosft.executor.worker SPEC.json\n")
        return 2
    try:
        job = Job.from_json(orjson.loads(Path(arguments[0]).read_bytes()))
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.stderr.write(f"{arguments[0]}: not a worker spec: {error}\n")
        return 2
    if job.parent:
        die_with(job.parent)
    progress = ProgressWriter(Path(job.progress)) if job.progress else None
    try:
        run(job, lambda line: progress.write(line) if progress else None)
    except Exception as error:
        # The boundary of the process: everything becomes a classified outcome, the traceback goes to the log.
        traceback.print_exc()
        _write_result(job, cause_of(error), _one_line(error))
        return 1
    finally:
        if progress:
            progress.close()
    _write_result(job, "", "")
    return 0


def run(job: Job, report: Report) -> dict[str, Artifact]:
    """Run the stages that do not exist yet.

    Args:
        job: What to run.
        report: Gets progress lines: seed, stage, step, steps and what the stage adds.

    Returns:
        Stage -> artifact.
    """
    store = ArtifactStore(Path(job.store))
    steps = {"train": _train, "checkpoint": _convert, "generate": _generate, "score": _score}
    keys = job.keys()
    done: dict[str, Artifact] = {}
    for stage in STAGES:
        found = store.find(stage, keys[stage])
        if found is None:
            inputs = {
                "seed": job.seed,
                "previous": keys[STAGES[max(0, STAGES.index(stage) - 1)]],
                **_inputs(job, stage),
            }
            report({"seed": job.seed, "stage": stage, "step": 0, "steps": 0})
            start = time.perf_counter()
            with store.create(stage, keys[stage], inputs) as step:
                steps[stage](job, store, done, step, _staged(job, stage, report))
                step.measured["wall_s"] = round(time.perf_counter() - start, 3)
            found = store.load(stage, keys[stage])
        done[stage] = found
    return done


def _staged(job: Job, stage: str, report: Report) -> Report:
    return lambda line: report({"seed": job.seed, "stage": stage, **line})


def _inputs(job: Job, stage: str) -> dict[str, Any]:
    if stage == "train":
        return {
            "base": job.base_fingerprint,
            "build": job.build,
            "plan": job.plan,
            "settings": asdict(job.train),
            "previous": "",
        }
    if stage == "generate":
        return {"settings": asdict(job.generate)}
    return {"items": job.items} if stage == "score" else {"prompts": job.prompts}


def _train(
    job: Job, store: ArtifactStore, done: Mapping[str, Artifact], step: Staging, report: Report
) -> None:
    from autosft.executor.base import check_base
    from autosft.executor.builds import plan_sha
    from autosft.executor.train import TrainJob, load_trainer

    del done
    build = store.load("build", job.build)
    if plan_sha(build, job.seed) != job.plan:
        raise ArtifactError("the build's plan changed since the run was started", where=str(build.path))
    result = load_trainer(job.train.backend).train(
        TrainJob(
            base=check_base(job.base),
            base_fingerprint=job.base_fingerprint,
            build=build,
            seed=job.seed,
            settings=job.train,
            forward_tokens=job.forward_tokens,
            folder=step.path,
        ),
        report,
    )
    step.data.update(result.data, base_fingerprint=job.base_fingerprint)
    step.measured.update(result.measured)


def _convert(
    job: Job, store: ArtifactStore, done: Mapping[str, Artifact], step: Staging, report: Report
) -> None:
    from autosft.executor.base import check_base
    from autosft.executor.convert import convert
    from autosft.executor.prompts import read_prompts

    del report
    prompts = read_prompts(store.load("prompts", job.prompts))
    step.data.update(
        convert(check_base(job.base), done["train"].file("model.safetensors"), prompts, step.path)
    )


def _generate(
    job: Job, store: ArtifactStore, done: Mapping[str, Artifact], step: Staging, report: Report
) -> None:
    from autosft.executor.generate import GenerateJob, load_generator
    from autosft.executor.prompts import read_prompts

    start = time.perf_counter()
    answers = load_generator(job.generate.backend).generate(
        GenerateJob(
            checkpoint=done["checkpoint"].path,
            prompts=read_prompts(store.load("prompts", job.prompts)),
            settings=job.generate,
            seed=job.seed,
            batch_size=job.batch_size or job.generate.batch_size,
        ),
        report,
    )
    with (step.path / "outputs.jsonl").open("wb") as stream:
        for answer in answers:
            stream.write(orjson.dumps(answer, option=orjson.OPT_APPEND_NEWLINE))
    tokens = sum(answer.tokens for answer in answers)
    step.data.update(
        answers=len(answers), truncated=sum(answer.truncated for answer in answers), generated_tokens=tokens
    )
    step.measured["generated_tokens_per_s"] = round(tokens / max(time.perf_counter() - start, 1e-9), 1)


def _score(
    job: Job, store: ArtifactStore, done: Mapping[str, Artifact], step: Staging, report: Report
) -> None:
    from autosft.executor.scoring import score

    del store, report
    step.data.update(
        score(Path(job.items_path), job.items, done["generate"].file("outputs.jsonl"), step.path)
    )


def die_with(parent: int) -> None:
    """End this process when its starter ends, however that happens.

    On Linux the kernel does it; elsewhere a thread looks every second.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    else:
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    if os.getppid() != parent:
        # It ended before the line above.
        os._exit(1)


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _write_result(job: Job, cause: str, detail: str) -> None:
    if job.result:
        write_atomic(Path(job.result), orjson.dumps({"cause": cause, "detail": detail}))


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    named = text if isinstance(error, AutosftError) else f"{type(error).__name__}: {text}"
    return named[:400]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
