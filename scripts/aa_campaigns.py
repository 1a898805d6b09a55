"""Measure the rate of false claims: short A/A campaigns in which nothing but seeds changes.

    python scripts/aa_campaigns.py --campaigns 40 --out runs/aa

Every campaign is real: the lab's base is trained on the untouched pool, each round under another recipe
seed, new incumbents are re-measured with fresh seeds, and every granted claim is false. Finished campaigns
are not repeated.
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
    "campaign.epochs=1.0",
    "lab.rows=600",
    "lab.prompts_per_leaf=8",
    "generate.max_new_tokens=32",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--campaigns", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("runs/aa"))
    options = parser.parse_args()
    false, tested, incumbents = 0, 0, 0
    for number in range(options.campaigns):
        folder = options.out / f"aa-{number}"
        overrides = [
            *SETTINGS,
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
        "campaigns_with_a_test": tested,
        "campaigns_where_a_seed_became_incumbent": incumbents,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
    print(json.dumps(summary, indent=2))


if __name__ == "__main__":
    main()
