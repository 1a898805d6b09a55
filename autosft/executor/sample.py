"""Answers of a checkpoint to the prompts of training rows: the raw material of rejection sampling.

The answers are an artifact of kind `samples`, named by what they were drawn from; an action takes its
fingerprint as a parameter, so that a rebuild reads the same answers instead of drawing new ones. They are
drawn in parts, each an artifact of its own: a killed call goes on with the part it was at.

samples.parquet: row (content id), sample (from 0), text, truncated (did not end by itself), tokens
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autosft.artifacts import Artifact, ArtifactStore
from autosft.errors import ConfigError, PoolError, TemplateError
from autosft.executor.base import base_fingerprint, check_base
from autosft.executor.generate import Generated, GenerateJob, load_generator
from autosft.executor.prompts import Prompts
from autosft.identity import fingerprint
from autosft.pool import RowEncoder, base_id
from autosft.types import Event, GenerateSettings, Message, Row

if TYPE_CHECKING:
    import pyarrow as pa

_SCHEME = 1
MAX_SAMPLES = 64
_PART_ROWS = 256

OnEvent = Callable[[Event], None]


def sample_rows(
    checkpoint: Path | str,
    rows: Sequence[Row],
    *,
    n: int,
    temperature: float,
    seed: int,
    store: ArtifactStore,
    max_new_tokens: int = 64,
    batch_size: int = 128,
    sequence_tokens: int = 256,
    backend: str = "transformers",
    on_event: OnEvent | None = None,
) -> Artifact:
    """Draw answers of a checkpoint to rows' prompts (all turns before the last reply), in this process.

    Source: rejection sampling as in "STaR" (arXiv:2203.14465): sample, verify, keep what passes.

    Args:
        checkpoint: A Hugging Face folder.
        rows: Rows to answer; copies of one conversation are answered once. Prompts that the template refuses,
            that lack a reply or leave no room for one are left out and counted.
        n: Samples a row, 1 to 64; 1 where the temperature is 0, since all would be equal.
        temperature: 0 is greedy; at most 2.
        seed: Decides the samples.
        store: Where the artifacts go.
        max_new_tokens: Longest answer.
        batch_size: Prompts side by side.
        sequence_tokens: Longest prompt and answer together, as in training.
        backend: Generation backend.
        on_event: Gets one `progress` a part.

    Returns:
        The artifact of kind `samples`; `data` holds checkpoint, rows, left_out, samples, complete, tokens.

    Raises:
        ConfigError: A setting is out of range, or the backend is unknown.
        PoolError: No row has a prompt that can be answered.
        BaseModelError: The checkpoint cannot be used.
    """
    settings = _settings(n, temperature, max_new_tokens, batch_size, backend)
    check_base(checkpoint)
    unique = list({base_id(row.id): row for row in rows}.values())
    identity = [
        "samples",
        _SCHEME,
        load_generator(backend).VERSION,
        base_fingerprint(checkpoint),
        [n, temperature, seed, max_new_tokens, sequence_tokens, backend],
    ]
    key = fingerprint([*identity, [base_id(row.id) for row in unique]])
    found = store.find("samples", key)
    if found is not None:
        return found
    store.sweep()
    encoder = RowEncoder(Path(checkpoint), sequence_tokens)
    ids, prompts = _prompts(unique, encoder, sequence_tokens)
    emit = on_event or (lambda event: None)
    parts = []
    for start in range(0, len(ids), _PART_ROWS):
        chosen = slice(start, start + _PART_ROWS)
        batch = Prompts(
            ids[chosen], prompts[chosen], encoder.end_of_turn_id, encoder.pad_id, Path(checkpoint)
        )
        parts.append(_part(Path(checkpoint), batch, settings, seed, identity, store))
        done = min(start + _PART_ROWS, len(ids))
        data = {"step": done, "steps": len(ids), "stage": "sample", "seed": seed}
        emit(Event("progress", f"sampled {done}/{len(ids)} rows", data=data))
    with store.create(
        "samples", key, {"identity": identity, "parts": [p.fingerprint for p in parts]}
    ) as step:
        table = _joined(parts, step.path / "samples.parquet")
        step.data = {
            "checkpoint": identity[3],
            "rows": len(ids),
            "left_out": len(unique) - len(ids),
            "samples": table.num_rows,
            "complete": table.num_rows - sum(table.column("truncated").to_pylist()),
            "tokens": sum(table.column("tokens").to_pylist()),
        }
        step.measured = {"wall_s": sum(float(p.measured.get("wall_s", 0.0)) for p in parts)}
    return store.load("samples", key)


def _settings(
    n: int, temperature: float, max_new_tokens: int, batch_size: int, backend: str
) -> GenerateSettings:
    bounds: tuple[tuple[str, float, float, float], ...] = (
        ("n", n, 1, MAX_SAMPLES if temperature > 0 else 1),
        ("temperature", temperature, 0.0, 2.0),
        ("max_new_tokens", max_new_tokens, 1, 100_000),
        ("batch_size", batch_size, 1, 100_000),
    )
    for name, value, low, high in bounds:
        if not low <= value <= high:
            raise ConfigError(
                f"{name} is {value}, allowed are {low:g} to {high:g}",
                where="sample_rows",
                hint="greedy answers are all equal: raise the temperature for more than one"
                if name == "n" and temperature == 0
                else "",
            )
    return GenerateSettings(
        max_new_tokens=max_new_tokens,
        batch_size=batch_size,
        temperature=temperature,
        samples_per_item=n,
        backend=backend,
    )


def _prompts(
    rows: Sequence[Row], encoder: RowEncoder, sequence_tokens: int
) -> tuple[list[str], list[list[int]]]:
    ids, prompts, refused = [], [], ""
    for row in rows:
        messages = _before_reply(row)
        if not messages:
            continue
        try:
            tokens = encoder.encode_prompt(messages)
        except TemplateError as error:
            refused = refused or f"row {row.id}: {error}"
            continue
        if len(tokens) < sequence_tokens:
            ids.append(base_id(row.id))
            prompts.append(tokens)
    if not ids:
        raise PoolError(
            f"none of {len(rows)} rows has a prompt that can be answered",
            where="sample_rows",
            hint=refused or "give rows with a user turn, or raise sequence_tokens",
        )
    return ids, prompts


def _before_reply(row: Row) -> tuple[Message, ...]:
    """Return the turns that the last reply answers; none where there is no reply or nothing before it."""
    last = max((i for i, m in enumerate(row.messages) if m.role == "assistant"), default=0)
    before = row.messages[:last]
    return before if any(m.role == "user" for m in before) else ()


def _part(
    checkpoint: Path,
    batch: Prompts,
    settings: GenerateSettings,
    seed: int,
    identity: list[Any],
    store: ArtifactStore,
) -> Artifact:
    import pyarrow.parquet as pq

    key = fingerprint([*identity, "part", batch.ids])
    found = store.find("samples-part", key)
    if found is not None:
        return found
    start = time.perf_counter()
    # Parts of one call draw from different streams; equal parts draw the same.
    own_seed = int(fingerprint([seed, batch.ids]), 16)
    job = GenerateJob(checkpoint, batch, settings, own_seed, settings.batch_size)
    answers = load_generator(settings.backend).generate(job, lambda line: None)
    with store.create("samples-part", key, {"identity": identity}) as step:
        pq.write_table(_table(answers), step.path / "samples.parquet")
        step.data = {"samples": len(answers)}
        step.measured = {"wall_s": round(time.perf_counter() - start, 3)}
    return store.load("samples-part", key)


def _table(answers: Sequence[Generated]) -> pa.Table:
    import pyarrow as pa

    return pa.table(
        {
            "row": pa.array([a.item for a in answers], pa.string()),
            "sample": pa.array([a.sample for a in answers], pa.int32()),
            "text": pa.array([a.text for a in answers], pa.large_string()),
            "truncated": pa.array([a.truncated for a in answers], pa.bool_()),
            "tokens": pa.array([a.tokens for a in answers], pa.int32()),
        }
    )


def _joined(parts: Sequence[Artifact], path: Path) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.concat_tables([pq.read_table(part.file("samples.parquet")) for part in parts])
    pq.write_table(table, path)
    return table
