"""Generation by a script that vLLM's own Python runs (`generate.backend=vllm-offline`): no server."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import orjson

from autosft.errors import ExecutorError
from autosft.executor.base import check_base
from autosft.executor.generate import Generated, GenerateJob, Report
from autosft.executor.generate.vllm_place import REQUEST_S, seconds, vllm_environment, vllm_python

VERSION = 1
SCRIPT = Path(__file__).with_name("vllm_script.py")


def generate(job: GenerateJob, report: Report) -> list[Generated]:
    """Answer every prompt, in item order, then by sample.

    Raises:
        ConfigError: There is no vLLM environment.
        BaseModelError: The checkpoint cannot be read.
        ExecutorError: The script failed or answered something else.
    """
    python, context = vllm_python(), check_base(job.checkpoint).context
    settings, prompts = job.settings, job.prompts
    greedy = settings.temperature <= 0.0
    report({"step": 0, "steps": len(prompts.ids)})
    with tempfile.TemporaryDirectory(prefix="autosft-vllm-") as place:
        asked, answered = Path(place) / "asked.json", Path(place) / "answered.json"
        asked.write_bytes(
            orjson.dumps(
                {
                    "model": str(job.checkpoint.absolute()),
                    "context": context,
                    "prompts": prompts.tokens,
                    "n": 1 if greedy else settings.samples_per_item,
                    "temperature": settings.temperature,
                    "max_new_tokens": settings.max_new_tokens,
                    "stop_id": prompts.end_of_turn_id,
                    "seed": job.seed % 2**31,
                    "batch": job.batch_size,
                }
            )
        )
        done = subprocess.run(
            [python, str(SCRIPT), str(asked), str(answered)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(vllm_environment()),
            timeout=seconds(REQUEST_S, 7200.0),
            check=False,
        )
        if done.returncode != 0 or not answered.exists():
            tail = " ".join(done.stdout.decode("utf-8", "replace").split())[-600:]
            raise ExecutorError(f"vLLM ended with status {done.returncode}: {tail}", where="vllm-offline")
        answers = orjson.loads(answered.read_bytes())
    if len(answers) != len(prompts.ids):
        raise ExecutorError(f"{len(answers)} answers to {len(prompts.ids)} prompts", where="vllm-offline")
    found = []
    for item, samples in zip(prompts.ids, answers, strict=True):
        chosen = samples * settings.samples_per_item if greedy else samples
        found += [
            Generated(item, k, str(s["text"]), bool(s["truncated"]), int(s["tokens"]))
            for k, s in enumerate(chosen)
        ]
    report({"step": len(prompts.ids), "steps": len(prompts.ids)})
    return found
