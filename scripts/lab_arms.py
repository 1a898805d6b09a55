"""Print what each planted defect of the lab costs: one row per family, the untouched pool, the oracle."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from autosft.errors import AutosftError
from autosft.lab.arms import ARMS, ArmResult, ArmSettings, measure_arms


def line(result: ArmResult) -> str:
    score, gain = result.score, result.gain
    shown = f"{result.arm:<14}{score.score:6.3f}  [{score.ci_low:.3f}, {score.ci_high:.3f}]"
    if gain is not None:
        shown += f"  {gain.diff:+.3f}  [{gain.ci_low:+.3f}, {gain.ci_high:+.3f}]"
        shown += f"  {gain.verdict}"
    else:
        shown += " " * 29
    return f"{shown}  {result.rows} rows, {result.train_tokens} tokens"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lab-seed", type=int, default=0, help="seed of defects and suite")
    parser.add_argument("--seeds", type=int, default=3, help="training seeds per arm")
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--prompts-per-leaf", type=int, default=60)
    parser.add_argument(
        "--arms", default=",".join(ARMS), help="arms, or families joined by +, separated by commas"
    )
    parser.add_argument("--slots", type=int, default=1, help="training runs side by side")
    parser.add_argument("--out", type=Path, default=Path("runs/lab-arms"), help="folder of builds and runs")
    parser.add_argument("--leaves", action="store_true", help="also print each arm's score per leaf")
    args = parser.parse_args()
    settings = ArmSettings(
        rows=args.rows,
        lab_seed=args.lab_seed,
        seeds=tuple(range(args.seeds)),
        prompts_per_leaf=args.prompts_per_leaf,
        slots=args.slots,
    )
    print(f"lab seed {args.lab_seed}, training seeds {settings.seeds}")
    print(f"{'arm':<14} score  95 % interval    gain    95 % interval")

    def show(result: ArmResult) -> None:
        print(line(result), flush=True)
        if args.leaves:
            print(
                "    " + " ".join(f"{leaf}:{score:.2f}" for leaf, score in result.leaves.items()), flush=True
            )

    try:
        measure_arms(args.out, settings, args.arms.split(","), on_arm=show)
    except AutosftError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
