"""Collect what the parent round left behind, for the analysts to measure."""

from __future__ import annotations

from autosft.actions import load_build
from autosft.evals import Output, read_outputs, score_outputs
from autosft.meta.campaign import Campaign
from autosft.meta.history import History, RoundFacts
from autosft.subagents.evidence import Sources


def gather_sources(campaign: Campaign, number: int, parent: RoundFacts, history: History) -> Sources:
    """Return the sources for round `number`: the incumbent's pool, answers, losses, and the history so
    far."""
    c = campaign
    build = load_build(c.store.load("build", parent.build))
    outputs: dict[int, list[Output]] = {}
    for receipt in parent.seeds:
        outputs[receipt.seed] = read_outputs(c.store.load("generate", receipt.outputs).file("outputs.jsonl"))
    artifacts = [f"round/{parent.round}", f"build/{parent.build}"]
    artifacts += [
        f"{kind}/{key}" for r in parent.seeds for kind, key in (("train", r.train), ("score", r.scores))
    ]
    return Sources(
        round=number,
        pool=build.pool,
        ctx=c.ctx,
        taxonomy=c.taxonomy,
        items=c.items,
        outputs=outputs,
        verdicts={seed: score_outputs(c.items, answers) for seed, answers in outputs.items()},
        leaf_scores={leaf: parent.data["leaf_scores"][leaf] for leaf in c.leaves},
        runs={r.seed: c.store.load("train", r.train).path for r in parent.seeds},
        rounds=history.past(),
        proposals=history.past_proposals(),
        artifacts=tuple(artifacts),
        programs=c.config.offered_programs,
        families=c.config.campaign.families,
    )
