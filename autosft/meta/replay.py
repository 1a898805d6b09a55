"""A campaign run again from its recorded replies: no key, no network, the same records."""

from __future__ import annotations

import shutil
from dataclasses import replace as changed
from pathlib import Path
from typing import Any

import orjson

from autosft.config import Config, config_from_json
from autosft.errors import CampaignError, ConfigError
from autosft.memory import read_journal
from autosft.memory.transcripts import read_exchanges
from autosft.meta.campaign import CONFIG, read_facts
from autosft.meta.run import run_campaign
from autosft.meta.sealed import HOLDOUT
from autosft.types import Event


def replay(folder: Path, out: Path) -> dict[str, Any]:
    """Run a campaign again in another folder and compare the journals.

    Args:
        folder: A campaign under the policy `llm`.
        out: A new folder for the replayed campaign.

    Returns:
        `identical`, `entries`, `exchanges`, and `first_difference` (number of the journal entry, or None).

    Raises:
        CampaignError: There is no campaign, or its policy has no recorded replies.
        ReplayError: A request is made that the recording does not hold.
    """
    config = stored_config(folder)
    if config.policy.name != "llm":
        raise CampaignError(
            f"the policy {config.policy.name!r} has no recorded replies",
            where=str(folder),
            hint="run it again with the same settings instead",
        )
    # Digests of the held-out twin are part of every build; its items stay where the operator has them.
    out.mkdir(parents=True, exist_ok=True)
    if (folder / HOLDOUT).exists():
        shutil.copyfile(folder / HOLDOUT, out / HOLDOUT)
    config = changed(
        config,
        llm=changed(config.llm, replay=str(folder.absolute())),
        # Nothing is sent, so nothing is spent on it.
        spend=changed(config.spend, usd=None, llm_tokens=None, wall_s=None),
    )
    run_campaign(config, out, _quiet)
    mine, theirs = ([e.sha for e in read_journal(place)] for place in (out, folder))
    pairs = list(zip(mine, theirs, strict=False))
    first = next((i for i, (a, b) in enumerate(pairs) if a != b), None)
    if first is None and len(mine) != len(theirs):
        first = len(pairs)
    exchanges = sum(1 for _ in read_exchanges(folder))
    return {
        "identical": first is None,
        "entries": len(theirs),
        "exchanges": exchanges,
        "first_difference": first,
    }


def stored_config(folder: Path) -> Config:
    """Return the configuration a campaign was last started with.

    Raises:
        CampaignError: There is no campaign, or its configuration is unreadable.
    """
    read_facts(folder)
    try:
        return config_from_json(orjson.loads((folder / CONFIG).read_bytes()))
    except (OSError, ValueError, ConfigError) as error:
        raise CampaignError(
            f"its stored configuration cannot be read ({error})", where=str(folder / CONFIG)
        ) from None


def window_of(folder: Path) -> int:
    """Return the context window a campaign's agents have, in tokens."""
    return stored_config(folder).llm.window_tokens


def _quiet(event: Event) -> None:
    """Take no notice: a replay says only whether it is identical."""
