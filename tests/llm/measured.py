"""Measure campaigns under the policy `llm` against a local server that speaks the vendors' wire formats.

    python -m tests.llm.measured FOLDER [--parts variants,kill,faults,long]

variants  six rounds of each of the five component variants on the lab's whole pool and suite: what was read,
          what calls were for, how full the window of 64,000 tokens got, what it would cost
kill      six rounds with all components, killed (SIGKILL, whole tree) in the middle of a call, started again,
          and replayed offline
faults    the same with a fault in every third call
long      33 rounds with all components on a small token budget: does any context need compaction?

The model is scripted: it reads with tools, then answers. Finished campaigns are not repeated.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from autosft.config import load_config
from autosft.llm import PURPOSES
from autosft.memory.transcripts import call_shares, context_meter
from autosft.meta import run_campaign, views
from autosft.meta.replay import replay
from autosft.spend import spend_by_scope
from tests.llm.brains import number, proposal, role_of, sensible
from tests.llm.servers import Asked, Brain, Said, serving

KEY = "AUTOSFT_MEASURED_KEY"
WINDOW = 64_000
VARIANTS = ("base", "executor", "analysis", "synthesis", "all")
LAB = ("campaign.budget_tokens=30000", "campaign.seeds=0,1", "campaign.claim_seeds=1", "holdout.seed=5")
SMALL = ("campaign.budget_tokens=4000", "campaign.seeds=0", "campaign.claim_seeds=0",
         "lab.prompts_per_leaf=4",
         "generate.max_new_tokens=24", "holdout.seed=5")  # fmt: skip
READS = (
    ("count_rows", {"by": "leaf"}),
    ("sample_rows", {"limit": 10}),
    ("sample_rows", {"limit": 10, "offset": 10}),
    ("compare_rounds", {"a": 0, "b": 1}),
)
FAULTS = (Said(fault="429"), Said(fault="500"), Said(fault="drop"), Said(fault="garbage"), Said(),
          Said(text="I cannot.", stop="refusal"), Said(text='{"claim": "cut', stop="length"),
          Said(text="Let me think."),
          Said(calls=(("answer", '["a list"]'),)), Said(calls=(("delete_everything", {"path": "/"}),)),
          Said(calls=(("count_rows", {"by": "leaf"}),)))  # fmt: skip


def reader(asked: Asked) -> Said:
    """A model that uses the tools it is offered before it answers, with another proposal each round."""
    turns = asked.body["messages"]
    last = max((i for i, turn in enumerate(turns) if turn["role"] == "user"), default=0)
    reads = [read for read in READS if read[0] in asked.tools]
    done = sum(1 for turn in turns[last:] if turn["role"] == "tool")
    if role_of(asked) in ("data", "failures", "dynamics", "history", "solo") and done < len(reads):
        return Said(calls=(reads[done],))
    if role_of(asked) == "solo":
        factors = {"postscript": round(1.1 + 0.1 * number(asked), 2)}
        return Said(
            calls=(("answer", proposal("mix/leaf_weights", {"factors": factors}, "postscript", 0.05)),)
        )
    return sensible(asked)


def faulty(brain: Brain) -> Brain:
    """Return a model whose every third reply is a fault, each kind in turn."""
    count = iter(range(10**9))
    lock = threading.Lock()

    def model(asked: Asked) -> Said:
        with lock:
            n = next(count)
        return brain(asked) if n % 3 else FAULTS[(n // 3) % len(FAULTS)]

    return model


def settings(url: str, rounds: int, sizes: Sequence[str], *more: str) -> list[str]:
    wanted = [f"campaign.rounds={rounds}", "policy=llm", f"llm.base_url={url}/v1", f"llm.api_key_env={KEY}"]
    return [*sizes, *wanted, "llm.timeout_s=20", *more]


def measure_variants(folder: Path, rounds: int) -> None:
    head = ["variant", "calls", *PURPOSES, "tokens read", "largest request", "window fill", "compactions",
            "dollars"]  # fmt: skip
    print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    for variant in VARIANTS:
        out = folder / f"variant-{variant}"
        with serving(reader) as server:
            run_campaign(load_config(settings(server.url, rounds, LAB, f"components={variant}")), out)
        print("| " + " | ".join(map(str, row_of(variant, out))) + " |", flush=True)


def row_of(variant: str, out: Path) -> list[Any]:
    meter, shares = context_meter(out, WINDOW), call_shares(out)
    calls = sum(row["calls"] for row in meter)
    spent = spend_by_scope(out)
    usd = sum(kinds.get("usd", 0.0) for scope, kinds in spent.items() if scope.startswith("role:"))
    return [
        f"{variant} ({views.status(out)['rounds_recorded']} rounds)",
        calls,
        *(f"{shares[purpose]['share']:.0%}" for purpose in PURPOSES),
        f"{sum(row['input_tokens'] for row in meter):,}",
        f"{max(row['largest'] for row in meter):,}",
        f"{max(row['fill'] for row in meter):.0%}",
        sum(row["compactions"] for row in meter),
        f"{usd:.3f}",
    ]


def measure_kill(folder: Path, rounds: int) -> None:
    out, reached, go_on = folder / "killed", threading.Event(), threading.Event()
    calls = iter(range(10**9))

    def brain(asked: Asked) -> Said:
        if next(calls) == 25 and not go_on.is_set():
            reached.set()
            go_on.wait(300)
        return reader(asked)

    with serving(brain) as server:
        wanted = settings(server.url, rounds, LAB)
        command = [sys.executable, "-m", "autosft", "run", *wanted, "--out", str(out)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        reached.wait(1_800)
        time.sleep(1)
        family = psutil.Process(process.pid).children(recursive=True)
        for pid in [*(member.pid for member in family), process.pid]:
            os.kill(pid, signal.SIGKILL)
        process.wait()
        go_on.set()
        done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode
    found = replay(out, folder / "replayed" / out.name)
    print(f"killed in call 26, started again: exit {done}, {views.status(out)['rounds_recorded']} rounds;"
          f" replay identical: {found['identical']} ({found['entries']} journal entries,"
          f" {found['exchanges']} recorded replies)")  # fmt: skip


def measure_faults(folder: Path, rounds: int) -> None:
    out = folder / "faulty"
    with serving(faulty(reader)) as server:
        done = run_campaign(load_config(settings(server.url, rounds, LAB, "llm.retries=2")), out)
    meter = context_meter(out)
    calls, failed = (sum(row[key] for row in meter) for key in ("calls", "failed"))
    print(f"a fault in every third call: {done['rounds']} rounds, {calls} exchanges, {failed} failed;"
          f" stopped: {views.status(out)['stop_reason']}")  # fmt: skip


def measure_long(folder: Path, rounds: int) -> None:
    out = folder / "long"
    with serving(reader) as server:
        run_campaign(load_config(settings(server.url, rounds, SMALL)), out)
    meter = context_meter(out, WINDOW)
    calls = sum(row["calls"] for row in meter)
    print(f"{views.status(out)['rounds_recorded']} rounds, all components: {calls} calls,"
          f" fullest window {max(r['fill'] for r in meter):.0%} of {WINDOW:,},"
          f" {sum(r['compactions'] for r in meter)} compactions")  # fmt: skip
    for first, last in ((1, 3), (rounds - 2, rounds)):
        part = [row for row in meter if first <= row["round"] <= last]
        largest = {
            role: max(row["largest"] for row in part if row["role"] == role)
            for role in sorted({row["role"] for row in part})
        }
        print(f"largest requests of rounds {first} to {last}: {largest}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--parts", default="variants,kill,faults,long")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--long", type=int, default=33)
    options = parser.parse_args()
    os.environ.setdefault(KEY, "sk-measured-0123456789")
    for part in options.parts.split(","):
        if part == "long":
            measure_long(options.folder, options.long)
        else:
            {"variants": measure_variants, "kill": measure_kill, "faults": measure_faults}[part](
                options.folder, options.rounds
            )


if __name__ == "__main__":
    main()
