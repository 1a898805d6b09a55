"""Opening a campaign folder: everything frozen at the start is fixed here, and checked on every later start.

OUT/campaign.json    what is frozen: settings, fingerprints of base, pool, suites, encoder, the token budget
OUT/config.json      the whole configuration of the latest start (operational settings may change)
OUT/journal.jsonl    what happened, hash-chained
OUT/artifacts/       every finished step
OUT/../.sealed/NAME  what agents must not see: the held-out twin, the lab's manifest
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from autosft.actions import ActionContext, BenchmarkIndex, BuildGuard
from autosft.artifacts import ArtifactStore, write_atomic
from autosft.config import ADDED, Config, campaign_settings, changed_settings, settings_fingerprint
from autosft.engine.place import cache_folder
from autosft.errors import (
    BaseFingerprintError,
    CampaignError,
    FrozenSettingsError,
)
from autosft.evals import read_items
from autosft.executor import base_fingerprint
from autosft.identity import fingerprint
from autosft.memory import Hypotheses, Journal
from autosft.meta.inputs import (
    base_folder,
    benchmarks_of,
    check_requirements,
    initial_pool,
    store_items,
    store_pool,
    stored_inputs,
)
from autosft.meta.mend import mend_records
from autosft.meta.sealed import seal_manifest
from autosft.pool import Pool, RowEncoder
from autosft.spend import Spend
from autosft.taxonomy import Taxonomy, assign
from autosft.types import EvalItem

SCHEMA = 1
CAMPAIGN = "campaign.json"
CONFIG = "config.json"


@dataclass(frozen=True, slots=True)
class Facts:
    """What is frozen for a campaign's life; `campaign.json` holds it.

    Attributes:
        name: Campaign name.
        settings: Flattened settings that decide results (I3).
        settings_fingerprint: Fingerprint of them.
        base: Folder of the base model.
        base_fingerprint: Fingerprint of its weights, configuration and tokenizer (I1).
        pool: Fingerprint of the initial pool; the rows are the artifact `pool/<fingerprint>`.
        pool_rows: Rows of the initial pool.
        encoder: Fingerprint of chat template, tokenizer and sequence length.
        items: Artifact id of the dev items.
        suites: Suite name -> fingerprint, primary and guard.
        primary: Names of the primary suites.
        benchmarks: Fingerprints of everything builds are decontaminated against (I5), held-out digests
        included.
        taxonomy: Fingerprint of the taxonomy tree.
        budget_tokens: Training tokens of every run (I2).
        optimizer_steps: Optimiser steps of every run.
        unique_tokens: Tokens of the initial pool, before any action.
        planned_claims: Claims the error rate is spread over.
    """

    name: str
    settings: Mapping[str, Any]
    settings_fingerprint: str
    base: str
    base_fingerprint: str
    pool: str
    pool_rows: int
    encoder: str
    items: str
    suites: Mapping[str, str]
    primary: tuple[str, ...]
    benchmarks: tuple[str, ...]
    taxonomy: str
    budget_tokens: int
    optimizer_steps: int
    unique_tokens: int
    planned_claims: int


@dataclass(frozen=True, slots=True)
class Campaign:
    """An open campaign: its frozen facts and the handles that nodes work through."""

    folder: Path
    config: Config
    facts: Facts
    store: ArtifactStore
    journal: Journal
    hypotheses: Hypotheses
    spend: Spend
    pool: Pool
    encoder: RowEncoder
    taxonomy: Taxonomy
    items: tuple[EvalItem, ...]
    items_path: Path
    benchmarks: tuple[BenchmarkIndex, ...]
    ctx: ActionContext
    guard: BuildGuard

    @property
    def seeds(self) -> tuple[int, ...]:
        """Training seeds of every round."""
        return tuple(self.config.campaign.seeds)

    @property
    def leaves(self) -> tuple[str, ...]:
        """Leaves of the primary suites, in item order."""
        return tuple(dict.fromkeys(i.leaf for i in self.items if i.suite in self.facts.primary))


def open_campaign(config: Config, folder: Path, say: Callable[[str], None] | None = None) -> Campaign:
    """Create or re-open a campaign; hold its lock. `say` gets lines for people while a large pool is read.

    Raises:
        FrozenSettingsError: The folder holds a campaign with other settings.
        BaseFingerprintError: The base is no longer the campaign's base.
        CampaignError: The folder holds something else, or a campaign of another version.
    """
    store = ArtifactStore(folder / "artifacts")
    store.sweep()
    journal = Journal(folder)
    if journal.damage is not None:
        journal.append("note.quarantined", str(journal.damage.where), {"what": journal.damage.what})
    mend_records(store, journal)
    taxonomy = Taxonomy.load("lab" if "lab" in config.suite.names else "default")
    opened = read_facts(folder) if (folder / CAMPAIGN).exists() else None
    if opened is not None:
        check_same_settings(opened, config, folder)
        pool, items_path = stored_inputs(store, opened, config, taxonomy)
    else:
        pool, manifest = initial_pool(config, say)
        check_requirements(pool)
        pool = assign(pool, taxonomy)
        items_path = store_items(store, config)
        if manifest is not None:
            seal_manifest(folder, manifest)
    base = base_folder(config)
    found = base_fingerprint(base)
    if opened is not None and found != opened.base_fingerprint:
        raise BaseFingerprintError(
            f"fingerprint {found}, the campaign's base has {opened.base_fingerprint}",
            where=str(base),
            hint="restore the base this campaign started from, or start a new campaign with --out",
        )
    cache = cache_folder() if config.executor.shared_cache else folder / "cache"
    encoder = RowEncoder(base, config.trainer.sequence_tokens, cache=cache / "rows")
    items = tuple(read_items(items_path))
    benchmarks = benchmarks_of(items, config, folder)
    facts = opened or _freeze(
        config, folder, store, pool, base, found, encoder, items_path, items, benchmarks, taxonomy
    )
    dev = tuple(index for index in benchmarks if not index.held_out)
    ctx = ActionContext(0, encoder, taxonomy, config.programs, artifacts=store, benchmarks=dev)
    write_atomic(folder / CONFIG, orjson.dumps(config.to_json(), option=orjson.OPT_INDENT_2))
    journal.append("campaign.opened", facts.name, {"facts": fingerprint(asdict(facts)), **_headline(facts)})
    spend = Spend(
        folder,
        _caps(config),
        config.spend.wall_s,
        scope_caps=_scope_caps(config),
        device_hour_usd=config.spend.device_hour_usd,
    )
    guard = BuildGuard(
        budget_tokens=facts.budget_tokens,
        optimizer_steps=facts.optimizer_steps,
        unique_tokens=facts.unique_tokens,
        encoder=facts.encoder,
        order=config.pool.order,
        benchmarks=facts.benchmarks,
        max_passes=config.campaign.max_passes,
    )
    return Campaign(
        folder,
        config,
        facts,
        store,
        journal,
        Hypotheses(journal),
        spend,
        pool,
        encoder,
        taxonomy,
        items,
        items_path,
        benchmarks,
        ctx,
        guard,
    )


def read_facts(folder: Path) -> Facts:
    """Read `campaign.json`.

    Raises:
        CampaignError: It is missing, damaged or of another version.
    """
    path = folder / CAMPAIGN
    try:
        data = orjson.loads(path.read_bytes())
        schema = data.pop("schema")
        if schema != SCHEMA:
            raise CampaignError(
                f"campaign of schema {schema}, this version reads {SCHEMA}",
                where=str(path),
                hint="read it with the version that wrote it",
            )
        data["primary"], data["benchmarks"] = tuple(data["primary"]), tuple(data["benchmarks"])
        return Facts(**data)
    except FileNotFoundError:
        raise CampaignError(
            "no campaign here", where=str(folder), hint="start one with `autosft run --out DIR`"
        ) from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CampaignError(
            f"unreadable ({error})", where=str(path), hint="restore the file from a backup"
        ) from None


def check_same_settings(facts: Facts, config: Config, folder: Path) -> None:
    """Compare a configuration with a campaign's frozen settings (I3).

    Raises:
        FrozenSettingsError: They differ; every difference is named.
    """
    lines = changed_settings({**ADDED, **facts.settings}, campaign_settings(config))
    if lines:
        raise FrozenSettingsError(
            "settings are frozen for a campaign: " + "; ".join(lines),
            where=str(folder),
            hint="give the settings it was started with, or another --out for a new campaign",
        )


def _freeze(
    config: Config,
    folder: Path,
    store: ArtifactStore,
    pool: Pool,
    base: Path,
    base_fp: str,
    encoder: RowEncoder,
    items_path: Path,
    items: tuple[EvalItem, ...],
    benchmarks: tuple[BenchmarkIndex, ...],
    taxonomy: Taxonomy,
) -> Facts:
    store_pool(store, pool)
    n_tokens, _ = encoder.counts(pool)
    unique = int(n_tokens.sum())
    budget = config.campaign.budget_tokens or max(1, round(unique * config.campaign.epochs))
    settings = campaign_settings(config)
    items_artifact = items_path.parent.name
    facts = Facts(
        name=config.campaign.name,
        settings=settings,
        settings_fingerprint=settings_fingerprint(settings),
        base=str(base),
        base_fingerprint=base_fp,
        pool=pool.fingerprint,
        pool_rows=len(pool),
        encoder=encoder.fingerprint,
        items=items_artifact,
        suites=dict(store.load("items", items_artifact).data["suites"]),
        primary=tuple(config.suite.names),
        benchmarks=tuple(b.fingerprint for b in benchmarks),
        taxonomy=taxonomy.fingerprint,
        budget_tokens=budget,
        optimizer_steps=math.ceil(budget / config.trainer.batch_tokens),
        unique_tokens=unique,
        planned_claims=max(1, config.campaign.rounds),
    )
    content = {"schema": SCHEMA, **asdict(facts)}
    write_atomic(folder / CAMPAIGN, orjson.dumps(content, option=orjson.OPT_INDENT_2))
    return facts


def _headline(facts: Facts) -> dict[str, Any]:
    keys = (
        "base_fingerprint",
        "pool",
        "pool_rows",
        "budget_tokens",
        "optimizer_steps",
        "settings_fingerprint",
    )
    return {key: getattr(facts, key) for key in keys}


def _caps(config: Config) -> dict[str, float]:
    caps = {
        "usd": config.spend.usd,
        "llm_tokens": config.spend.llm_tokens,
        "device_s": None if config.spend.device_hours is None else config.spend.device_hours * 3600,
    }
    return {kind: float(cap) for kind, cap in caps.items() if cap is not None}


def _scope_caps(config: Config) -> dict[str, dict[str, float]]:
    caps = {
        "round": {"usd": config.spend.round_usd, "llm_tokens": config.spend.round_llm_tokens},
        "role": {"usd": config.spend.role_usd, "llm_tokens": config.spend.role_llm_tokens},
    }
    return {
        scope: {kind: float(cap) for kind, cap in kinds.items() if cap is not None}
        for scope, kinds in caps.items()
    }
