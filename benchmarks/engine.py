"""The data engine beside other tools: one run, the same rows, the same question, ratios.

    python benchmarks/engine.py [--rows 264000] [--peer-rows 20000] [--peers PYTHON] [--out FOLDER]

Steps whose peers would take hours are measured on `--peer-rows` rows for both sides. `--peers` names a Python
that has the packages of benchmarks/requirements-peers.txt; peers that are not there are left out and said so.
Everything is made anew from a seed in a temporary folder; the engine's caches are off unless a step says so.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from autosft.actions.decontaminate import BenchmarkIndex, scan
from autosft.engine.near import near_duplicates
from autosft.engine.nearest import nearest_texts
from autosft.engine.words import hash_column
from autosft.pool import Pool, RowEncoder, read_written_pool, write_pool
from autosft.pool.rows import new_row

PEER_SCRIPT = Path(__file__).with_name("engine_peers.py")
WORDS = 45_000


def vocabulary(rng: np.random.Generator) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    sizes = np.clip(rng.normal(5, 2, WORDS), 1, 14).astype(int)
    words = np.array(["".join(rng.choice(letters, size)) for size in sizes], dtype=object)
    chance = 1 / np.arange(3, WORDS + 3) ** 1.05
    return words, np.cumsum(chance / chance.sum())


def make_texts(rows: int) -> tuple[list[tuple[str, str]], list[str], set[int]]:
    """Return (prompt, response) pairs, evaluation prompts, and which rows were planted with one of those."""
    rng, choose = np.random.default_rng(7), random.Random(7)
    words, chances = vocabulary(rng)

    def text(n: int) -> str:
        drawn = words[np.minimum(np.searchsorted(chances, rng.random(n)), WORDS - 1)].copy()
        for place in np.flatnonzero(rng.random(n) < 0.15).tolist():
            word = drawn[place]
            drawn[place] = choose.choice([f"{word},", f"{word}.", word.capitalize(), f"{word}é", f"“{word}”"])
        return " ".join(drawn)

    benchmark = [text(int(n)) for n in np.clip(rng.lognormal(3.6, 0.5, 541), 15, 200)]
    asked = np.clip(rng.lognormal(3.4, 0.8, rows), 4, 1500).astype(int)
    answered = np.clip(rng.lognormal(4.95, 0.75, rows), 5, 4000).astype(int)
    pairs = [(text(int(a)), text(int(b))) for a, b in zip(asked, answered, strict=True)]
    planted = set(choose.sample(range(rows), max(3, rows // 200)))
    for row in sorted(planted):
        item = choose.choice(benchmark)
        pairs[row] = (choose.choice([item, f"{pairs[row][0]}\n{item}", item.upper()]), pairs[row][1])
    for row in choose.sample(sorted(set(range(rows)) - planted), rows // 20):
        other = pairs[choose.randrange(rows)][1].split(" ")
        for _ in range(max(1, len(other) // 100)):
            other[choose.randrange(len(other))] = str(words[choose.randrange(WORDS)])
        pairs[row] = (pairs[row][0], " ".join(other))
    return pairs, benchmark, planted


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    found = run()
    return time.perf_counter() - start, found


class Table:
    """What was measured, a line a step and tool."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def add(self, step: str, tool: str, rows: int, seconds: float, note: str = "") -> None:
        own = next(
            (
                x["s"]
                for x in self.lines
                if x["step"] == step and x["tool"] == "autosft" and x["rows"] == rows
            ),
            None,
        )
        ratio = None if own is None or tool == "autosft" else round(seconds / own, 1)
        self.lines.append(
            {"step": step, "tool": tool, "rows": rows, "s": round(seconds, 3), "ratio": ratio, "note": note}
        )
        print(
            f"{step:28} {tool:26} {rows:9,} rows {seconds:9.2f} s",
            "" if ratio is None else f"x {ratio}",
            note,
            flush=True,
        )

    def markdown(self, head: str) -> str:
        lines = [
            head,
            "",
            "| step | tool | rows | seconds | times autosft's | note |",
            "|---|---|---|---|---|---|",
        ]
        for x in self.lines:
            ratio = "" if x["ratio"] is None else x["ratio"]
            lines.append(
                f"| {x['step']} | {x['tool']} | {x['rows']:,} | {x['s']:.2f} | {ratio} | {x['note']} |"
            )
        return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=264_000)
    parser.add_argument("--peer-rows", type=int, default=20_000)
    parser.add_argument("--peers", help="Python that has the peers")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    given = parser.parse_args()
    table = Table()
    with tempfile.TemporaryDirectory() as place:
        run(given, Path(place), table)
    cores = len(os.sched_getaffinity(0))
    load = ", ".join(f"{x:.1f}" for x in os.getloadavg())
    head = (
        f"# The data engine beside other tools\n\n{platform.machine()}, {cores} cores, Python "
        f"{platform.python_version()}, load averages at the end {load}. "
        f"`python benchmarks/engine.py --rows {given.rows} --peer-rows {given.peer_rows}`"
    )
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "engine.md").write_text(table.markdown(head), encoding="utf-8")
    (given.out / "engine.json").write_text(json.dumps({"load": load, "lines": table.lines}, indent=1) + "\n")
    return 0


def run(given: argparse.Namespace, place: Path, table: Table) -> None:  # noqa: PLR0915
    pairs, benchmark, planted = make_texts(given.rows)
    pool = Pool.from_rows([new_row("s", [("user", a), ("assistant", b)]) for a, b in pairs])
    write_pool(pool, place / "pool.parquet")
    size = sum(len(a) + len(b) for a, b in pairs) / 1e6
    print(f"{given.rows:,} rows, {size:.0f} million characters", flush=True)
    n_peer = min(given.peer_rows, given.rows)
    small = pool.take(range(n_peer))
    with (place / "peer.jsonl").open("w", encoding="utf-8") as stream:
        for number, (a, b) in enumerate(pairs[:n_peer]):
            stream.write(json.dumps({"id": str(number), "prompt": a, "response": b}) + "\n")
    (place / "benchmark.json").write_text(json.dumps(benchmark))
    index = (BenchmarkIndex.from_items("ifeval", benchmark),)
    scan(pool.take(range(64)), index)  # compiles
    near_duplicates(["a b c d", "a b c e"], 0.8)

    table.add(
        "read the pool", "autosft", given.rows, timed(lambda: read_written_pool(place / "pool.parquet"))[0]
    )
    for part in (pool, small):
        seconds, hits = timed(lambda part=part: scan(part, index))
        found = set(np.flatnonzero(hits["ifeval"]).tolist())
        wanted = {row for row in planted if row < len(part)}
        table.add(
            "decontaminate, 13 words",
            "autosft",
            len(part),
            seconds,
            f"{len(found & wanted)} of {len(wanted)} planted, {len(found - wanted)} more",
        )
    for part in (pool, small):
        column = part.table.column("messages").combine_chunks().flatten().field("content")
        seconds, found = timed(lambda column=column: near_duplicates(hash_column(column), 0.8))
        table.add(
            "near-duplicates, Jaccard .8",
            "autosft",
            len(part),
            seconds,
            f"{int((found >= 0).sum()):,} of {len(column):,} turns",
        )
    from autosft.lab.base import base_dir

    for part in (pool, small):
        encoder = RowEncoder(base_dir(), 1_000_000)
        seconds, counts = timed(lambda part=part, encoder=encoder: encoder.counts(part)[0])
        table.add("token counts", "autosft", len(part), seconds, f"{int(counts.sum()):,} tokens")
    encoder = RowEncoder(base_dir(), 1_000_000, cache=place / "cache")
    encoder.counts(small)
    again = RowEncoder(base_dir(), 1_000_000, cache=place / "cache")
    table.add(
        "token counts, cached", "autosft", len(small), timed(lambda: again.counts(small))[0], "fresh reader"
    )
    choose = random.Random(1)
    queries = []
    for a, _ in choose.sample(pairs, 500):
        words = a.split(" ")
        for _ in range(max(1, len(words) // 8)):
            words[choose.randrange(len(words))] = f"new{choose.randrange(10**6)}"
        queries.append(" ".join(words))
    prompts = [a for a, _ in pairs]
    nearest_texts(queries[:4], prompts[:60_000], 5)
    seconds, (_, likeness) = timed(lambda: nearest_texts(queries, prompts, 5))
    table.add("500 nearest rows", "autosft", given.rows, seconds)
    from rapidfuzz import fuzz, process

    few = 8
    seconds, values = timed(
        lambda: process.cdist(queries[:few], prompts, scorer=fuzz.token_sort_ratio, workers=-1)
    )
    same = int((np.abs(values.max(axis=1) - likeness[:few, 0]) < 1e-3).sum())
    table.add(
        "500 nearest rows",
        "rapidfuzz cdist",
        given.rows,
        seconds / few * len(queries),
        f"from {few} queries; {same} of {few} nearest equal",
    )
    if not given.peers:
        print("peers not measured: give --peers")
        return
    environment = {**os.environ, "TOKENIZERS_PARALLELISM": "true", "HF_HUB_OFFLINE": "1"}
    command = [given.peers, str(PEER_SCRIPT), str(place), str(base_dir() / "tokenizer.json")]
    process_ = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=False)
    for line in process_.stdout.splitlines():
        if line.startswith("{"):
            found = json.loads(line)
            table.add(found["step"], found["tool"], n_peer, found["s"], found["note"])
    if process_.returncode:
        print(f"peers ended with status {process_.returncode}")


if __name__ == "__main__":
    sys.exit(main())
