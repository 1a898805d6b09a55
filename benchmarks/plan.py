"""A pool of 100 million rows on paper: time, memory, shuffle and cost, computed from the measured growth.

    python benchmarks/plan.py [--results benchmarks/results/scaling.json] [--cores 256] [--core-hour-usd 0.05]

Per-row figures are those of the largest measured size; work divides over cores, which is an assumption for
reading and shuffling and measured only on the cores of one machine.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from autosft.engine.near import BANDS

STEPS = ("word hashes", "13-grams of 541 prompts", "near-duplicates")
KEY_BYTES = 16  # a band key and a place


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--results", type=Path, default=Path("benchmarks/results/scaling.json"))
    parser.add_argument("--cores", type=int, default=256)
    parser.add_argument("--core-hour-usd", type=float, default=0.05)
    parser.add_argument("--measured-cores", type=int, default=2)
    options = parser.parse_args()
    last = json.loads(options.results.read_text())[-1]
    text = last["text_bytes"] / last["rows"]
    memory = (last["peak_bytes"] - last["peak_before_bytes"]) / last["rows"]
    near = last["near-duplicates found"] / last["rows"]
    core_s = {step: last[step] / last["rows"] * options.measured_cores for step in STEPS}
    print(
        f"From {last['rows']:,} rows: {text:,.0f} bytes of text a row, {memory:,.0f} of memory beyond it,"
        f" {near:.1%} near-duplicates; {options.cores} cores at ${options.core_hour_usd:g} an hour.\n"
    )
    head = ["rows", "text", *STEPS, "memory of all nodes", "shuffle of keys", "shuffle of texts", "cost"]
    print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    for rows in (10_000_000, 100_000_000, 384_000_000):
        seconds = {step: rows * s / options.cores for step, s in core_s.items()}
        cells = [
            f"{rows:,}",
            f"{rows * text / 1e9:,.0f} GB",
            *(f"{s / 60:,.1f} min" for s in seconds.values()),
            f"{rows * memory / 1e9:,.0f} GB",
            f"{rows * BANDS * KEY_BYTES / 1e9:,.0f} GB",
            # A dropped text and the one it is near to travel, each once.
            f"{rows * near * 2 * text / 1e9:,.0f} GB",
            f"${sum(seconds.values()) / 3600 * options.cores * options.core_hour_usd:,.2f}",
        ]
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
