"""A/A campaigns: every round trains the same rows under another recipe seed, so every claim is a false one.

The policy `seed-only` exists to measure the campaign's false-claim rate with real training (I12); a change
of seed must never be booked as progress.
"""

from __future__ import annotations

from dataclasses import replace

from autosft.meta.campaign import Campaign
from autosft.meta.history import History

SEED_ONLY = "seed-only"


def write_reseed(campaign: Campaign, key: str, number: int, history: History) -> None:
    """Decide on round 0's recipe with the round's number as its seed."""
    recipe = replace(history.rounds[0].recipe, seed=number)
    parent = history.parent_for(number)
    assert parent is not None
    predicted = dict.fromkeys(campaign.leaves, 0.0)
    claim = f"A/A: round 0's recipe under recipe seed {number}; nothing should change."
    reply = {"analyst": SEED_ONLY, "claim": claim, "actions": [], "predicted": predicted, "evidence": []}
    with campaign.store.create("decision", key, {"round": number}) as step:
        step.data = {
            "round": number,
            "parent": parent.round,
            "recipe": recipe.to_json(),
            "recipe_fingerprint": recipe.fingerprint,
            "accepted": [reply],
            "rejected": [],
            "abstained": [],
            "bundled": False,
            "kinds": [],
            "claim": claim,
            "predicted": predicted,
            "predicted_score": 0.0,
            "evidence": [],
            "lines": [claim],
            "trials": [],
            "effect": "",
        }
