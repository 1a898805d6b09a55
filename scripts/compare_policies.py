"""Compare policies at equal rounds: campaigns of rules, random and mix-only on several lab seeds, one table.

    python scripts/compare_policies.py --lab-seeds 21,22,23 --out runs/policies

Each campaign's final incumbent is measured with fresh training seeds that no selection saw. Differences are
paired by item inside a lab seed (interval over items and training seeds), and over lab seeds by a
t interval. Finished campaigns are not repeated.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import numpy as np
from scipy.stats import t

from autosft.config import load_config
from autosft.evals import ScoreTable, campaign_score, compare, seed_noise_floor
from autosft.memory import CampaignLock
from autosft.meta import run_campaign
from autosft.meta.campaign import open_campaign
from autosft.meta.claims import fresh_seeds
from autosft.meta.nodes import Nodes
from autosft.meta.scores import load_table

POLICIES = ("rules", "random", "mix-only")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lab-seeds", default="21,22,23")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("runs/policies"))
    parser.add_argument("--set", nargs="*", default=[], help="further settings for every campaign")
    options = parser.parse_args()
    seeds = [int(seed) for seed in options.lab_seeds.split(",")]
    tables: dict[tuple[str, int], ScoreTable] = {}
    firsts: dict[int, float] = {}
    for seed in seeds:
        for policy in POLICIES:
            folder = options.out / f"{policy}-{seed}"
            tables[policy, seed], firsts[seed] = measure(folder, policy, seed, options.rounds, options.set)
            print(f"{policy} on lab seed {seed}: {campaign_score(tables[policy, seed]):.3f}", flush=True)
    lines = report(tables, firsts, seeds)
    text = "\n".join(lines)
    (options.out / "table.md").write_text(text + "\n")
    print(text)


def measure(folder: Path, policy: str, seed: int, rounds: int, extra: list[str]) -> tuple[ScoreTable, float]:
    """Run a campaign; return its final incumbent under fresh seeds, and round 0's score."""
    settings = [f"policy={policy}", f"policy.seed={seed}", f"lab.seed={seed}", "holdout=none", *extra]
    settings += [f"campaign.rounds={rounds}", f"campaign.name={policy}-{seed}"]
    config = load_config(settings)
    run_campaign(config, folder)
    with CampaignLock(folder):
        campaign = open_campaign(config, folder)
        nodes = Nodes(campaign, lambda event: None)
        best = nodes.history().incumbent
        assert best is not None
        receipts = nodes.run_seeds(best.round, best.recipe.fingerprint, best.build, fresh_seeds(campaign))
        first = nodes.history().rounds[0].data["score"]
        return load_table(campaign.store, receipts, campaign.items, campaign.facts.primary), first


def report(
    tables: dict[tuple[str, int], ScoreTable], firsts: dict[int, float], seeds: list[int]
) -> list[str]:
    """Return the table as Markdown lines."""
    noise = seed_noise_floor(tables.values())
    header = ["lab seed", "untouched", *POLICIES, *(f"rules - {p} [95 % interval]" for p in POLICIES[1:])]
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    for seed in seeds:
        cells = [str(seed), f"{firsts[seed]:.3f}"]
        cells += [f"{campaign_score(tables[p, seed]):.3f}" for p in POLICIES]
        for policy in POLICIES[1:]:
            found = compare(tables[policy, seed], tables["rules", seed], noise)
            cells.append(f"{found.diff:+.3f} [{found.ci_low:+.3f}, {found.ci_high:+.3f}]")
        lines.append("| " + " | ".join(cells) + " |")
    cells = ["mean", f"{np.mean(list(firsts.values())):.3f}"]
    cells += [f"{np.mean([campaign_score(tables[p, s]) for s in seeds]):.3f}" for p in POLICIES]
    for policy in POLICIES[1:]:
        found = [compare(tables[policy, s], tables["rules", s], noise) for s in seeds]
        half = float(t.ppf(0.975, noise.df)) * math.sqrt(sum(f.se**2 for f in found)) / len(found)
        gap = float(np.mean([f.diff for f in found]))
        cells.append(f"{gap:+.3f} [{gap - half:+.3f}, {gap + half:+.3f}]")
    lines.append("| " + " | ".join(cells) + " |")
    cells = ["as a draw of lab seeds", "", *[""] * len(POLICIES)]
    for policy in POLICIES[1:]:
        gaps = [campaign_score(tables["rules", s]) - campaign_score(tables[policy, s]) for s in seeds]
        half = float(t.ppf(0.975, len(gaps) - 1)) * float(np.std(gaps, ddof=1)) / math.sqrt(len(gaps))
        cells.append(f"{np.mean(gaps):+.3f} [{np.mean(gaps) - half:+.3f}, {np.mean(gaps) + half:+.3f}]")
    lines.append("| " + " | ".join(cells) + " |")
    lines.append("")
    lines.append(f"Seed noise {noise.sd:.4f} (df {noise.df}). Settings: " + json.dumps({"seeds": seeds}))
    return lines


if __name__ == "__main__":
    main()
