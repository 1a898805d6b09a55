"""Receipts of finished runs, kept so that a round's record never depends on a second look at the workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from autosft.identity import fingerprint
from autosft.meta.campaign import Campaign
from autosft.types import SeedReceipt

# What of a worker's summary is the same in equal campaigns; wall times and attempts are not.
STABLE_SUMMARY = ("train_tokens", "loss_tokens", "optimizer_steps", "final_loss", "score", "truncated")


def stored_receipt(receipt: SeedReceipt, campaign: Campaign) -> dict[str, Any]:
    """Return a receipt as the records keep it: no wall times, no attempts, paths relative to the campaign."""
    data = asdict(receipt)
    if receipt.checkpoint and Path(receipt.checkpoint).is_absolute():
        data["checkpoint"] = str(Path(receipt.checkpoint).relative_to(campaign.folder))
    data["attempts"] = 1
    data["detail"] = receipt.detail if receipt.status != "ok" else ""
    data["summary"] = {key: receipt.summary[key] for key in STABLE_SUMMARY if key in receipt.summary}
    return data


def _key(campaign: Campaign, build: str, seeds: Sequence[int]) -> str:
    facts = campaign.facts
    return fingerprint([build, list(seeds), facts.base_fingerprint, facts.items, facts.settings_fingerprint])


def store_receipts(campaign: Campaign, build: str, receipts: Sequence[SeedReceipt]) -> None:
    """Keep the receipts of a build's runs, if all of them succeeded; failed ones are tried again on a
    restart."""
    if any(receipt.status != "ok" for receipt in receipts):
        return
    key = _key(campaign, build, [r.seed for r in receipts])
    if campaign.store.find("run", key) is None:
        with campaign.store.create("run", key, {"build": build}) as step:
            step.data = {"receipts": [stored_receipt(r, campaign) for r in receipts]}
            step.measured = {str(r.seed): {"attempts": r.attempts, **r.summary} for r in receipts}


def find_receipts(campaign: Campaign, build: str, seeds: Sequence[int]) -> list[SeedReceipt] | None:
    """Return the receipts of finished runs of a build, or None where they were not all finished."""
    found = campaign.store.find("run", _key(campaign, build, seeds))
    return None if found is None else [SeedReceipt(**receipt) for receipt in found.data["receipts"]]
