"""Run one campaign under two trainers and compare the scores of each round, paired by item.

    python scripts/compare_trainers.py --trainers lab,megatron-cpu --rounds 3 --out runs/trainers

Decisions follow scores, so the recipes of the two may part where their scores differ slightly.
The table says which rounds trained on the same rows; a finished campaign is not repeated.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

from autosft.config import load_config
from autosft.evals import ScoreTable, campaign_score, compare, seed_noise_floor
from autosft.memory import CampaignLock
from autosft.meta import run_campaign
from autosft.meta.campaign import open_campaign
from autosft.meta.nodes import Nodes
from autosft.meta.scores import load_table


@dataclass(frozen=True)
class Measured:
    """A finished campaign: round -> (build's fingerprint, scores), the incumbent's round, seconds it took."""

    rounds: dict[int, tuple[str, ScoreTable]]
    incumbent: int
    wall_s: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trainers", default="lab,megatron-cpu", help="two presets of conf/trainer")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("runs/trainers"))
    parser.add_argument("--set", nargs="*", default=[], help="further settings for both campaigns")
    options = parser.parse_args()
    first, second = options.trainers.split(",")
    found = {}
    for trainer in (first, second):
        found[trainer] = measure(options.out / trainer, trainer, options.rounds, options.set)
        print(f"{trainer}: {found[trainer].wall_s:.0f} s", flush=True)
    text = "\n".join(report(first, found[first], second, found[second]))
    (options.out / "table.md").write_text(text + "\n")
    print(text)


def measure(folder: Path, trainer: str, rounds: int, extra: list[str]) -> Measured:
    """Run a campaign, or read it where it is finished."""
    settings = [f"trainer={trainer}", f"campaign.rounds={rounds}", f"campaign.name={trainer}", *extra]
    config = load_config(settings)
    start = time.monotonic()
    run_campaign(config, folder)
    wall_s = time.monotonic() - start
    with CampaignLock(folder):
        campaign = open_campaign(config, folder)
        history = Nodes(campaign, lambda event: None).history()
        tables = {
            done.round: (
                done.build,
                load_table(campaign.store, done.seeds, campaign.items, campaign.facts.primary),
            )
            for done in history.rounds
            if done.measured
        }
        assert history.incumbent is not None
        return Measured(tables, history.incumbent.round, wall_s)


def report(first: str, one: Measured, second: str, two: Measured) -> list[str]:
    """Return the table as Markdown lines."""
    noise = seed_noise_floor([table for side in (one, two) for _, table in side.rounds.values()])
    lines = [f"| round | rows | {first} | {second} | difference [95 % interval] |", "|---|---|---|---|---|"]
    pairs = [(str(k), k, k) for k in sorted(set(one.rounds) & set(two.rounds))]
    pairs.append(("incumbents", one.incumbent, two.incumbent))
    for name, a, b in pairs:
        (build_a, table_a), (build_b, table_b) = one.rounds[a], two.rounds[b]
        gap = compare(table_a, table_b, noise)
        rows = "the same" if build_a == build_b else "different"
        scores = f"{campaign_score(table_a):.3f} | {campaign_score(table_b):.3f}"
        interval = f"{gap.diff:+.3f} [{gap.ci_low:+.3f}, {gap.ci_high:+.3f}]"
        lines.append(f"| {name} | {rows} | {scores} | {interval} |")
    return [*lines, "", f"Seed noise {noise.sd:.4f} (df {noise.df})."]


if __name__ == "__main__":
    main()
