"""Evaluation of one checkpoint on suites, outside any campaign: answers in chunks, scores, aggregates.

A folder holds everything and the same call goes on where it stopped:

    items/<suite>.jsonl      the prompts
    artifacts/...            encoded prompts, answers by chunk, scores (content-addressed)
    <suite>/outputs.jsonl    all answers
    <suite>/items.parquet    verdicts, one line an answer
    results.json             settings, fingerprints, aggregates
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from autosft.artifacts import Artifact, ArtifactStore, write_atomic
from autosft.errors import ConfigError
from autosft.evals import Suite, read_items, read_outputs, write_items
from autosft.evals.aggregates import aggregate
from autosft.evals.outputs import Output, write_outputs
from autosft.evals.repaired import repaired_scores
from autosft.evals.score import score_outputs
from autosft.executor.base import base_fingerprint, check_base
from autosft.executor.prompts import Prompts, items_sha, make_prompts, read_prompts
from autosft.executor.scoring import score_table
from autosft.identity import fingerprint
from autosft.types import CONTENT_PREFIXES, Event, GenerateSettings

#: Answers of one chunk, about: what a killed run may lose.
CHUNK_ANSWERS = 256
#: Raise it when equal answers would get other results.
VERSION = 2


@dataclass(frozen=True, slots=True)
class Protocol:
    """How a suite is answered unless told otherwise.

    Attributes:
        samples: Samples an item (the k of avg@k).
        max_new_tokens: Longest answer.
        temperature: Of sampling; one sample is greedy.
    """

    samples: int = 1
    max_new_tokens: int = 512
    temperature: float = 0.7


PROTOCOLS: Mapping[str, Protocol] = {
    "ifeval": Protocol(samples=10, max_new_tokens=1280),
    "ifbench": Protocol(samples=10, max_new_tokens=1280),
    "mbpp_plus": Protocol(samples=3, max_new_tokens=768),
    "humaneval": Protocol(max_new_tokens=768),
    "gsm8k": Protocol(max_new_tokens=512),
    "lab": Protocol(max_new_tokens=64),
}

OnEvent = Callable[[Event], None]


def protocol_of(
    suite: str,
    *,
    samples: int | None = None,
    max_new_tokens: int | None = None,
    temperature: float | None = None,
    batch_size: int = 64,
) -> GenerateSettings:
    """Return the generation settings of a suite, with what is given in place of its own.

    Raises:
        ConfigError: A number is out of range, or several samples are asked of greedy decoding.
    """
    own = PROTOCOLS.get(suite, Protocol())
    k = own.samples if samples is None else samples
    warmth = (own.temperature if k > 1 else 0.0) if temperature is None else temperature
    longest = own.max_new_tokens if max_new_tokens is None else max_new_tokens
    for name, value, least in (
        ("samples", k, 1),
        ("max_new_tokens", longest, 1),
        ("batch_size", batch_size, 1),
    ):
        if value < least:
            raise ConfigError(f"{name} is {value}, the least is {least}", where=f"evaluate {suite}")
    if not 0.0 <= warmth <= 10.0:
        raise ConfigError(f"temperature {warmth} is outside [0, 10]", where=f"evaluate {suite}")
    if k > 1 and warmth == 0.0:
        raise ConfigError(
            f"{k} samples at temperature 0 are one answer {k} times",
            where=f"evaluate {suite}",
            hint="one sample, or a temperature above 0",
        )
    return GenerateSettings(longest, batch_size, warmth, k)


def evaluate(
    checkpoint: Path | str,
    suites: Sequence[Suite],
    out: Path,
    *,
    settings: Mapping[str, GenerateSettings] | None = None,
    seed: int = 0,
    sequence_tokens: int = 4096,
    on_event: OnEvent | None = None,
) -> dict[str, Any]:
    """Evaluate a checkpoint; what `out` holds already is not computed again.

    Args:
        checkpoint: Folder of a Hugging Face causal language model.
        suites: What to evaluate on, each once.
        out: Folder for results.
        settings: Suite name -> how to answer; `protocol_of` where absent.
        seed: Decides sampling.
        sequence_tokens: Limit of the encoder; prompts are never cut.
        on_event: Gets progress.

    Returns:
        The content of `results.json`: checkpoint, seed, and suite -> settings, n_items, suite_fingerprint,
        and what `aggregates.aggregate` returns.

    Raises:
        BaseModelError: The checkpoint cannot be used.
        ConfigError: No suite, one twice, or the folder holds the results of another checkpoint.
    """
    names = [suite.name for suite in suites]
    if not names or len(set(names)) != len(names):
        raise ConfigError(f"suites must be given, each once: {names}", where="evaluate")
    info, identity = check_base(checkpoint), base_fingerprint(checkpoint)
    run = _Evaluation(Path(checkpoint), identity, Path(out), seed, sequence_tokens, on_event or _silent)
    run.claim(info.model_type)
    done = {}
    for suite in suites:
        chosen = (settings or {}).get(suite.name) or protocol_of(suite.name)
        done[suite.name] = run.suite(suite, chosen)
        run.write(done)
    return run.write(done)


def _silent(event: Event) -> None:
    del event


class _Evaluation:
    """One checkpoint's evaluation in one folder."""

    def __init__(
        self, checkpoint: Path, identity: str, out: Path, seed: int, sequence_tokens: int, emit: OnEvent
    ) -> None:
        self._checkpoint, self._identity, self._out = checkpoint, identity, out
        self._seed, self._sequence_tokens, self._emit = seed, sequence_tokens, emit
        self._store = ArtifactStore(out / "artifacts")

    def claim(self, model_type: str) -> None:
        """Make the folder this checkpoint's, or refuse another's."""
        self._out.mkdir(parents=True, exist_ok=True)
        self._store.sweep()
        path = self._out / "checkpoint.json"
        mine = {"checkpoint": self._identity, "model_type": model_type}
        if path.exists():
            if orjson.loads(path.read_bytes()) != mine:
                raise ConfigError(
                    "the folder holds results of another checkpoint",
                    where=str(self._out),
                    hint="choose another --out",
                )
            return
        write_atomic(path, orjson.dumps(mine))

    def suite(self, suite: Suite, settings: GenerateSettings) -> dict[str, Any]:
        """Answer and score one suite."""
        items_path = self._out / "items" / f"{suite.name}.jsonl"
        items_path.parent.mkdir(parents=True, exist_ok=True)
        write_items(suite.items, items_path)
        outputs = self._answers(suite, items_path, settings)
        folder = self._out / suite.name
        folder.mkdir(exist_ok=True)
        write_outputs(outputs, folder / "outputs.jsonl")
        artifact = self._scores(items_path, folder / "outputs.jsonl", suite.name)
        shutil.copyfile(artifact.file("items.parquet"), folder / "items.parquet")
        return {
            "settings": asdict(settings),
            "suite_fingerprint": suite.fingerprint,
            "n_items": len(suite),
            **artifact.data,
        }

    def write(self, done: Mapping[str, Any]) -> dict[str, Any]:
        """Write `results.json`, suites of earlier calls kept, and return what this call evaluated."""
        path = self._out / "results.json"
        known = orjson.loads(path.read_bytes())["suites"] if path.exists() else {}
        head = {"checkpoint": self._identity, "path": str(self._checkpoint), "seed": self._seed}
        whole = {**head, "suites": {**known, **done}}
        write_atomic(path, orjson.dumps(whole, option=orjson.OPT_INDENT_2))
        return {**head, "out": str(self._out), "suites": dict(done)}

    def _answers(self, suite: Suite, items_path: Path, settings: GenerateSettings) -> list[Output]:
        made = make_prompts(self._checkpoint, items_path, self._sequence_tokens, self._store)
        prompts = read_prompts(made)
        per_chunk = max(1, CHUNK_ANSWERS // settings.samples_per_item)
        starts = range(0, len(prompts.ids), per_chunk)
        outputs: list[Output] = []
        for number, start in enumerate(starts):
            part = replace(
                prompts,
                ids=prompts.ids[start : start + per_chunk],
                tokens=prompts.tokens[start : start + per_chunk],
            )
            self._emit(
                Event("stage", f"{suite.name}: answers {start + 1}-{start + len(part.ids)} of {len(suite)}")
            )
            outputs += self._chunk(part, settings, made.fingerprint, number)
        return outputs

    def _chunk(self, part: Prompts, settings: GenerateSettings, prompts: str, number: int) -> list[Output]:
        from autosft.executor.generate import GenerateJob, load_generator

        backend = load_generator(settings.backend)
        chunk = [prompts, number, len(part.ids)]
        key = fingerprint(
            ["answers", VERSION, backend.VERSION, self._identity, chunk, asdict(settings), self._seed]
        )
        found = self._store.find("answers", key)
        if found is None:
            # Each chunk numbers its items from 0, so each has a seed of its own.
            seed = int(fingerprint(["chunk", self._seed, number])[:8], 16)
            job = GenerateJob(self._checkpoint, part, settings, seed, settings.batch_size)
            start = time.perf_counter()
            answers = backend.generate(job, lambda line: self._emit(Event("progress", "", data=dict(line))))
            with self._store.create("answers", key) as step:
                write_outputs(
                    (Output(a.item, a.text, a.truncated, a.tokens, a.sample) for a in answers),
                    step.path / "outputs.jsonl",
                )
                step.measured["wall_s"] = round(time.perf_counter() - start, 3)
                step.measured["generated_tokens"] = sum(a.tokens for a in answers)
            found = self._store.load("answers", key)
        return read_outputs(found.file("outputs.jsonl"))

    def _scores(self, items_path: Path, outputs_path: Path, suite: str) -> Artifact:
        key = fingerprint(["scores", VERSION, items_sha(items_path), items_sha(outputs_path)])
        found = self._store.find("scores", key)
        if found is not None:
            return found
        items = read_items(items_path)
        self._emit(Event("stage", f"{suite}: scoring {len(items)} items"))
        start = time.perf_counter()
        outputs = read_outputs(outputs_path)
        scores = score_outputs(items, outputs)
        repaired = repaired_scores(items, outputs, scores)
        with self._store.create("scores", key) as step:
            score_table(scores, step.path)
            kinds = {r.id.startswith(CONTENT_PREFIXES) for item in items for r in item.requirements}
            step.data = aggregate(suite, scores, by_kind=len(kinds) == 2)
            if repaired is not None:
                step.data["repaired"] = aggregate(suite, repaired)["metrics"]
            if any(r.id.startswith("code:") for item in items for r in item.requirements):
                from autosft.taxonomy.sandbox import isolation

                step.measured["isolation"] = list(isolation())
            step.measured["wall_s"] = round(time.perf_counter() - start, 3)
        return self._store.load("scores", key)
