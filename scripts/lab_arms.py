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
    if gain is None:
        shown += f"{'':<43}"
    else:
        interval = f"[{gain.ci_low:+.3f}, {gain.ci_high:+.3f}]"
        shown += f"  {gain.diff:+.3f}  {interval}  {gain.verdict:<19}"
    return f"{shown}{result.rows:>6}{result.train_tokens:>9}"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lab-seed", type=int, default=0, help="seed of defects and suite")
    parser.add_argument("--seeds", type=int, default=3, help="training seeds per arm")
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--prompts-per-leaf", type=int, default=60)
    parser.add_argument("--epochs", type=float, default=1.5, help="budget in passes over the untouched pool")
    parser.add_argument(
        "--arms", default=",".join(ARMS), help="comma list of arms, or of families joined by +"
    )
    parser.add_argument("--slots", type=int, default=1, help="training runs side by side")
    parser.add_argument("--out", type=Path, default=Path("runs/lab-arms"), help="folder of builds and runs")
    parser.add_argument("--leaves", action="store_true", help="also print each arm's score per leaf")
    return parser.parse_args()


def main() -> int:
    args = arguments()
    settings = ArmSettings(
        rows=args.rows,
        lab_seed=args.lab_seed,
        seeds=tuple(range(args.seeds)),
        prompts_per_leaf=args.prompts_per_leaf,
        epochs=args.epochs,
        slots=args.slots,
    )

    def progress(arm: str, score: float) -> None:
        print(f"  {arm} {score:.3f}", file=sys.stderr, flush=True)

    try:
        results = measure_arms(args.out, settings, args.arms.split(","), on_run=progress)
    except AutosftError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"lab seed {args.lab_seed}, training seeds {settings.seeds}, {args.epochs:g} passes")
    gain = f"{'gain':>6}  {'95 % interval':<16}  {'verdict':<19}"
    print(f"{'arm':<14}{'score':>6}  {'95 % interval':<14}  {gain}{'rows':>6}{'tokens':>9}")
    for result in results:
        print(line(result))
        if args.leaves:
            print("    " + " ".join(f"{leaf}:{score:.2f}" for leaf, score in result.leaves.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
