"""Measure the rate of false claims: short A/A campaigns in which nothing but seeds changes.

    python scripts/aa_campaigns.py --campaigns 40 --mended --out runs/aa

Every campaign is real: the lab's base is trained on the untouched pool (scores near zero) or, with --mended,
on the pool whose planted defects are mended (scores about one half, where noise is largest), each round
under another recipe seed; new incumbents are re-measured with fresh seeds, and every granted claim is false.
Finished campaigns are not repeated.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from scipy.stats import beta

from autosft.config import load_config
from autosft.meta import run_campaign, views

SETTINGS = (
    "policy=seed-only",
    "holdout=none",
    "components.revision=false",
    "campaign.seeds=0,1",
    "campaign.claim_seeds=2",
    "generate.max_new_tokens=32",
)
UNTOUCHED = ("campaign.epochs=1.0", "lab.rows=600", "lab.prompts_per_leaf=8")
MENDED = ("campaign.budget_tokens=60000", "lab.prompts_per_leaf=20", "pool.order=file")
MENDED_ROWS = 3_000


def mended_pool(seed: int, folder: Path) -> Path:
    """Write the lab's pool with every planted defect mended; return the file."""
    from autosft.lab.oracle import mend
    from autosft.lab.pool import make_pool
    from autosft.pool import write_pool
    from autosft.types import FAMILIES

    path = folder / f"mended-{seed}.parquet"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        pool, manifest = make_pool(MENDED_ROWS, seed)
        write_pool(mend(pool, manifest, FAMILIES), path)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--campaigns", type=int, default=40)
    parser.add_argument("--mended", action="store_true", help="train on the mended pool")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("runs/aa"))
    options = parser.parse_args()
    false, tested, incumbents = 0, 0, 0
    for number in range(options.campaigns):
        folder = options.out / f"aa-{number}"
        overrides = [
            *SETTINGS,
            *(MENDED if options.mended else UNTOUCHED),
            *([f"pool={mended_pool(number, options.out / 'pools')}"] if options.mended else []),
            f"campaign.name=aa-{number}",
            f"campaign.rounds={options.rounds}",
            f"lab.seed={number}",
        ]
        run_campaign(load_config(overrides), folder)
        rounds = views.rounds(folder)
        claims = [r for r in rounds if r["round"] > 0 and r["fresh_seeds_score"] is not None]
        granted = views.status(folder)["claimed_best"] != 0
        tested += bool(claims)
        false += granted
        incumbents += views.status(folder)["incumbent"] != 0
        scores = ", ".join(f"{r['score']:.3f}" for r in rounds)
        print(f"campaign {number}: scores {scores}; {'FALSE CLAIM' if granted else 'no claim'}", flush=True)
    n = options.campaigns
    low = beta.ppf(0.025, false, n - false + 1) if false else 0.0
    high = beta.ppf(0.975, false + 1, n - false)
    summary = {
        "campaigns": n,
        "rounds": options.rounds,
        "false_claims": false,
        "rate": false / n,
        "ci_low": float(low),
        "ci_high": float(high),
        "mended": options.mended,
        "campaigns_with_a_test": tested,
        "campaigns_where_a_seed_became_incumbent": incumbents,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
    print(json.dumps(summary, indent=2))


if __name__ == "__main__":
    main()
