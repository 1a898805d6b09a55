"""How the engine's time and memory grow with the pool: one process a size, exponents and a plot.

    python benchmarks/engine_scaling.py [--sizes 26000,82000,264000,830000,2600000] [--out benchmarks/results]

Texts of Zipf words are made anew from a seed (some with an accent, 5 % near-duplicates of earlier ones, .5
% that hold an evaluation prompt). Steps: word hashes, look-up of 13-grams of 541 prompts, near-duplicates
at Jaccard .8. Kernels are compiled before the clock starts.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from autosft.engine.near import near_duplicates
from autosft.engine.words import find_grams, gram_table, hash_column, hash_texts

WORDS = 45_000
CHUNK = 20_000
STEPS = ("word hashes", "13-grams of 541 prompts", "near-duplicates")


def texts_of(rows: int) -> tuple[pa.ChunkedArray, list[str]]:
    """Return texts as an Arrow column, and the evaluation prompts."""
    rng = np.random.default_rng(11)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    sizes = np.clip(rng.normal(5, 2, WORDS), 1, 14).astype(int)
    words = [
        "".join(rng.choice(letters, size)) + ("é" if i % 15 == 0 else "") for i, size in enumerate(sizes)
    ]
    chances = np.cumsum(1 / np.arange(3, WORDS + 3) ** 1.05)
    chances /= chances[-1]

    def draw(lengths: np.ndarray[Any, Any]) -> list[str]:
        places = np.minimum(np.searchsorted(chances, rng.random(int(lengths.sum()))), WORDS - 1).tolist()
        ends = np.cumsum(lengths).tolist()
        starts = [0, *ends[:-1]]
        return [" ".join([words[p] for p in places[a:b]]) for a, b in zip(starts, ends, strict=True)]

    prompts = draw(np.clip(rng.lognormal(3.6, 0.5, 541), 15, 200).astype(int))
    chunks = []
    for start in range(0, rows, CHUNK):
        n = min(CHUNK, rows - start)
        texts = draw(np.clip(rng.lognormal(4.95, 0.75, n), 5, 4000).astype(int))
        for row in rng.choice(n, n // 20, replace=False).tolist():
            copy = texts[int(rng.integers(n))].split(" ")
            for _ in range(max(1, len(copy) // 100)):
                copy[int(rng.integers(len(copy)))] = words[int(rng.integers(WORDS))]
            texts[row] = " ".join(copy)
        for row in rng.choice(n, n // 200, replace=False).tolist():
            texts[row] = f"{texts[row]} {prompts[int(rng.integers(541))]}"
        chunks.append(pa.array(texts, pa.large_string()))
    return pa.chunked_array(chunks), prompts


def measure(rows: int) -> dict[str, Any]:
    """Measure one size in this process."""
    small, prompts = texts_of(2_000)
    near_duplicates(hash_column(small), 0.8)
    grams = np.unique(hash_texts(prompts).ngrams(13)[0])
    table = gram_table(grams)
    find_grams(hash_column(small), 13, table)
    column, _ = texts_of(rows)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found: dict[str, Any] = {"rows": rows, "text_bytes": int(column.nbytes)}
    start = time.perf_counter()
    hashed = hash_column(column)
    found[STEPS[0]] = time.perf_counter() - start
    start = time.perf_counter()
    hits = np.unique(find_grams(hashed, 13, table)[0])
    found[STEPS[1]] = time.perf_counter() - start
    start = time.perf_counter()
    dropped = near_duplicates(hashed, 0.8)
    found[STEPS[2]] = time.perf_counter() - start
    found["rows hit"] = len(hits)
    found["near-duplicates found"] = int((dropped >= 0).sum())
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found["peak_bytes"], found["peak_before_bytes"] = after * 1024, before * 1024
    return found


def exponent(sizes: list[int], seconds: list[float]) -> float:
    """Return the slope of log time over log rows."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def plot(results: list[dict[str, Any]], path: Path) -> None:
    """Draw seconds over rows, both logarithmic, as SVG."""
    width, height, left, bottom = 640, 400, 70, 50
    xs = [math.log10(r["rows"]) for r in results]
    ys = [math.log10(r[s]) for r in results for s in STEPS]
    x0, x1, y0, y1 = min(xs), max(xs), math.floor(min(ys)), math.ceil(max(ys))

    def at(x: float, y: float) -> tuple[float, float]:
        return (
            left + (x - x0) / (x1 - x0) * (width - left - 20),
            height - bottom - (y - y0) / (y1 - y0) * (height - bottom - 20),
        )

    parts = ['<rect width="640" height="400" fill="white"/>']
    for y in range(y0, y1 + 1):
        _, py = at(x0, y)
        parts.append(f'<line x1="{left}" x2="{width - 20}" y1="{py:.1f}" y2="{py:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 8}" y="{py + 4:.1f}" text-anchor="end">{10.0**y:g} s</text>')
    for r, x in zip(results, xs, strict=True):
        px, _ = at(x, y0)
        anchor = "end" if x == x1 else "middle"
        place = f'x="{px:.1f}" y="{height - bottom + 20}" text-anchor="{anchor}"'
        parts.append(f"<text {place}>{r['rows']:,}</text>")
    for step, colour in zip(STEPS, ("#1b6ca8", "#a8501b", "#2f7d32"), strict=True):
        points = [at(x, math.log10(r[step])) for r, x in zip(results, xs, strict=True)]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        slope = exponent([r["rows"] for r in results], [r[step] for r in results])
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in points]
        row = STEPS.index(step)
        parts.append(
            f'<text x="{left + 12}" y="{30 + 18 * row}" fill="{colour}">{step}: rows^{slope:.2f}</text>'
        )
    parts.append(f'<text x="{(left + width) / 2:.0f}" y="{height - 8}" text-anchor="middle">rows</text>')
    style = 'font-family="sans-serif" font-size="12"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" {style}>'
    path.write_text(f"{head}{''.join(parts)}</svg>\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", default="26000,82000,264000,830000,2600000")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one)))
        return
    results = []
    for size in map(int, options.sizes.split(",")):
        command = [sys.executable, __file__, "--one", str(size)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{size:,} rows: ended with {done.returncode}\n{done.stderr[-500:]}")
            continue
        results.append(json.loads(done.stdout.splitlines()[-1]))
        print({key: round(v, 2) if isinstance(v, float) else v for key, v in results[-1].items()}, flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "scaling.json").write_text(json.dumps(results, indent=1) + "\n")
    plot(results, options.out / "scaling.svg")
    load = ", ".join(f"{x:.1f}" for x in os.getloadavg())
    lines = [
        "# How the engine grows with the pool",
        "",
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, load averages at"
        f" the end {load}. `python benchmarks/engine_scaling.py`",
        "",
        "![seconds over rows](scaling.svg)",
        "",
        f"| rows | text | {' | '.join(STEPS)} | near-duplicates found | peak memory |",
        "|---" * (len(STEPS) + 4) + "|",
    ]
    for r in results:
        cells = " | ".join(f"{r[step]:.2f} s" for step in STEPS)
        lines.append(
            f"| {r['rows']:,} | {r['text_bytes'] / 1e6:,.0f} MB | {cells} | {r['near-duplicates found']:,} |"
            f" {r['peak_bytes'] / 1e9:.1f} GB |"
        )
    sizes = [r["rows"] for r in results]
    slopes = ", ".join(f"{step} {exponent(sizes, [r[step] for r in results]):.2f}" for step in STEPS)
    lines += ["", f"Exponents: {slopes}."]
    (options.out / "scaling.md").write_text("\n".join(lines) + "\n")
    print(lines[-1])


if __name__ == "__main__":
    main()
