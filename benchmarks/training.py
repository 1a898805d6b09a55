"""Training speed beside transformers' Trainer and TRL's SFTTrainer: one base, one build, equal losses.

    OMP_NUM_THREADS=1 python benchmarks/training.py [--peers PYTHON] [--rows N] [--base DIR] [--dtype float32]

Rows are the lab's. Steps hold a fixed number of rows, because the peers batch by rows; all see the same rows
in the same order with AdamW, a constant learning rate, clipping at 1 and weight decay on matrices. PYTHON is
an interpreter with trl, transformers and accelerate (`pip install torch==2.13.0 trl accelerate`); without it
only this project's trainers run. Contenders take turns; the best of `--repeats` counts, start-up and saving
left out. Other work on the machine shows in wall seconds, less in a process's own processor seconds.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from autosft.artifacts import Artifact, ArtifactStore
from autosft.executor.base import base_fingerprint, check_base
from autosft.executor.train import TrainJob, load_trainer
from autosft.lab import base_dir, make_pool
from autosft.pool import RowEncoder
from autosft.types import TrainSettings

REFERENCE = "TRL SFTTrainer"
LOG_STEPS = 10


@dataclass
class Result:
    """A contender's best run: non-pad tokens a second, and mean losses of every ten steps."""

    tokens_per_s: float
    tokens_per_cpu_s: float | None
    losses: np.ndarray


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--peers", type=Path, help="Python with trl, transformers, accelerate, datasets")
    parser.add_argument("--base", type=Path, default=base_dir())
    parser.add_argument("--rows", type=int, default=960)
    parser.add_argument("--rows-per-step", type=int, default=12)
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--json", type=Path, help="also write figures here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        build = write_build(folder, options.base, options.rows, options.rows_per_step)
        best = run_all(folder, build, options)
    report(best, options.json)


def write_build(folder: Path, base: Path, n_rows: int, rows_per_step: int) -> Artifact:
    """Lay the lab's first rows out as a build whose steps hold equally many rows."""
    encoder = RowEncoder(base, 256)
    rows = make_pool(4000, 0)[0].rows()[:n_rows]
    encoded = [encoder.encode(row) for row in rows]
    lengths = [len(e.ids) for e in encoded]
    tokens = np.concatenate([np.asarray(e.ids, np.int32) for e in encoded])
    masks = np.concatenate([np.asarray(e.loss_mask, np.uint8) for e in encoded])
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    order = np.random.default_rng(0).permutation(n_rows).astype(np.int32)
    starts = np.arange(0, n_rows + 1, rows_per_step, dtype=np.int64)
    # Losses are compared by tens of steps.
    starts = starts[: (len(starts) - 1) // LOG_STEPS * LOG_STEPS + 1]
    order = order[: starts[-1]]
    store = ArtifactStore(folder / "store")
    with store.create("build", "benchmark") as step:
        columns = {"id": [r.id for r in rows], "source": [r.source for r in rows]}
        leaf = pa.array([None] * n_rows, pa.string())
        pq.write_table(pa.table({**columns, "leaf": leaf}), step.path / "rows.parquet")
        np.save(step.path / "tokens.npy", tokens)
        np.save(step.path / "mask.npy", masks)
        np.save(step.path / "offsets.npy", offsets)
        np.savez(
            step.path / "plan-0.npz",
            rows=order,
            step_starts=starts,
            sequence_starts=np.arange(len(order), dtype=np.int64),
        )
        step.data = {"plans": {}}
    return store.load("build", "benchmark")


def run_all(folder: Path, build: Artifact, options: argparse.Namespace) -> dict[str, Result]:
    """Let the contenders take turns; return each one's fastest run."""
    settings = TrainSettings(
        lr=1e-3, min_lr=1e-3, warmup_frac=0.0, dtype=options.dtype, log_every_steps=LOG_STEPS
    )
    contenders: dict[str, TrainSettings | str] = {
        "autosft torch": settings,
        "autosft megatron, 1 rank": replace(settings, backend="megatron"),
        "autosft megatron, 2 ranks": replace(settings, backend="megatron", data_parallel=2),
    }
    if options.peers:
        contenders |= {"transformers Trainer": "transformers", REFERENCE: "trl"}
    best: dict[str, Result] = {}
    for turn in range(options.repeats):
        for number, (name, what) in enumerate(contenders.items()):
            place = folder / f"run-{turn}-{number}"
            place.mkdir()
            if isinstance(what, str):
                found = run_peer(what, place, build, options)
            else:
                found = run_own(what, place, build, options.base)
            print(f"turn {turn + 1}: {name}: {found.tokens_per_s:,.0f} tokens/s", flush=True)
            if name not in best or found.tokens_per_s > best[name].tokens_per_s:
                best[name] = found
    return best


def run_own(settings: TrainSettings, place: Path, build: Artifact, base: Path) -> Result:
    """Train with one of this project's trainers."""
    job = TrainJob(check_base(base), base_fingerprint(base), build, 0, settings, 0, place)
    done = load_trainer(settings.backend).train(job, lambda line: None)
    curve = pq.read_table(place / "loss_curve.parquet").to_pandas()
    tokens, cpu_s = done.data["train_tokens"], done.measured.get("train_cpu_s")
    return Result(
        tokens / done.measured["train_s"],
        tokens / cpu_s if cpu_s else None,
        curve[curve.source == ""].loss.to_numpy().reshape(-1, LOG_STEPS).mean(1),
    )


def run_peer(what: str, place: Path, build: Artifact, options: argparse.Namespace) -> Result:
    """Train with a peer in its own Python."""
    script = Path(__file__).parent / "peers" / "training.py"
    command = [options.peers, script, what, build.path, options.base, place]
    command += [options.rows_per_step, options.dtype]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{what} failed:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads((place / "result.json").read_text())
    return Result(
        found["tokens"] / found["wall_s"], found["tokens"] / found["cpu_s"], np.array(found["losses"])
    )


def report(best: dict[str, Result], where: Path | None) -> None:
    """Print the table; ratios are to TRL where it ran, else to the torch trainer."""
    reference = best.get(REFERENCE) or best["autosft torch"]
    first = best["autosft torch"].losses
    print("| trainer | tokens/s | tokens/cpu-s | ratio | last loss | largest difference of mean losses |")
    print("|---|---|---|---|---|---|")
    lines = []
    for name, result in best.items():
        cpu = f"{result.tokens_per_cpu_s:,.0f}" if result.tokens_per_cpu_s else ""
        gap = float(np.abs(result.losses - first).max())
        ratio = result.tokens_per_s / reference.tokens_per_s
        speed = f"{result.tokens_per_s:,.0f} | {cpu} | {ratio:.2f}"
        print(f"| {name} | {speed} | {result.losses[-1]:.4f} | {gap:.1e} |")
        lines.append({"trainer": name, "tokens_per_s": result.tokens_per_s, "ratio": ratio, "loss_gap": gap})
    if where:
        where.write_text(json.dumps(lines, indent=2))


if __name__ == "__main__":
    main()
