"""What a sweep consists of: its kinds, the variants of each, and the campaigns that they make."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from autosft.config import Config, check_settings, load_config
from autosft.errors import ConfigError
from autosft.identity import fingerprint
from autosft.meta.inputs import initial_pool
from autosft.types import FAMILIES

KINDS = ("additive", "leave-one-out", "families", "sources")
PRESETS = {
    "base": "base",
    "+executor": "executor",
    "+analysis": "analysis",
    "+synthesis": "synthesis",
    "+revision": "all",
}
PARTS = ("executor", "analysis", "synthesis", "revision")
# Training seeds of different campaign seeds never meet.
SEED_STRIDE = 1000


@dataclass(frozen=True, slots=True)
class Cell:
    """One campaign of a sweep: its variant, campaign seed, folder and configuration."""

    variant: str
    seed: int
    folder: Path
    config: Config


def variants(kind: str, config: Config) -> dict[str, Config]:
    """Return variant name -> configuration; the last of `additive`, the first of others, is the full system.

    Args:
        kind: `additive`, `leave-one-out`, `families` or `sources`.
        config: What every variant shares.

    Raises:
        ConfigError: There is no such kind; or sources are to be compared without a budget, or there is one.
        PoolError: The pool cannot be read.
    """
    if kind not in KINDS:
        raise ConfigError(f"no sweep named {kind!r}", where="--kind", hint=f"known: {', '.join(KINDS)}")
    if kind == "additive":
        return {
            name: replace(config, components=load_config([f"components={preset}"]).components)
            for name, preset in PRESETS.items()
        }
    if kind == "sources":
        return _by_source(config)
    full = replace(config, components=load_config(["components=all"]).components)
    if kind == "leave-one-out":
        without = {
            f"-{part}": replace(full, components=replace(full.components, **{part: False})) for part in PARTS
        }
        return {"all": full, **without}
    found = {"all": full}
    for family in FAMILIES:
        found[f"only-{family}"] = _with_families(full, (family,))
        found[f"without-{family}"] = _with_families(full, tuple(f for f in FAMILIES if f != family))
    return found


def _by_source(config: Config) -> dict[str, Config]:
    """Return round 0 on all sources, on each alone, and without each."""
    if config.campaign.budget_tokens is None:
        raise ConfigError(
            "sources are compared at equal tokens, which must be given",
            where="campaign.budget_tokens",
            hint="e.g. campaign.budget_tokens=50000",
        )
    config = replace(
        config,
        campaign=replace(config.campaign, rounds=0),
        pool=replace(config.pool, sources=None),
    )
    names = tuple(sorted(set(initial_pool(config)[0].sources)))
    if len(names) < 2:
        raise ConfigError(
            f"all rows are of source {names[0]}: nothing to compare",
            where="--kind sources",
            hint="give rows of several sources",
        )

    def of(wanted: Sequence[str]) -> Config:
        return replace(config, pool=replace(config.pool, sources=tuple(wanted)))

    alone = {f"only-{name}": of([name]) for name in names}
    without = {f"without-{name}": of([n for n in names if n != name]) for name in names}
    return {"all": config, **alone, **without}


def _with_families(config: Config, families: tuple[str, ...]) -> Config:
    return replace(config, campaign=replace(config.campaign, families=families))


def plan(
    config: Config, kind: str, seeds: Sequence[int], folder: Path, only: Sequence[str] = ()
) -> list[Cell]:
    """Return the campaigns of a sweep.

    A campaign seed moves the policy's seed, the lab's (its pool and suite) and the training seeds, by
    `SEED_STRIDE`. A held-out twin is sealed only where `holdout.seed` is given: a drawn one would differ
    between variants.

    Args:
        config: What all campaigns share.
        kind: See `variants`.
        seeds: Campaign seeds.
        folder: Folder of the sweep.
        only: Names of the variants wanted; all if empty.

    Raises:
        ConfigError: No seeds, a seed twice, or an unknown variant.
    """
    if not seeds or len(set(seeds)) < len(seeds) or min(seeds) < 0:
        raise ConfigError("different whole numbers from 0 on are needed", where="--seeds", hint="e.g. 0,1,2")
    known = variants(kind, config)
    unknown = [name for name in only if name not in known]
    if unknown:
        raise ConfigError(f"no variant {unknown[0]!r}", where="--only", hint=f"known: {', '.join(known)}")
    chosen = {name: known[name] for name in known if not only or name in only}
    return [
        Cell(name, seed, folder / cell_name(name, seed), _seeded(variant, cell_name(name, seed), seed))
        for seed in seeds
        for name, variant in chosen.items()
    ]


def cell_name(variant: str, seed: int) -> str:
    """Return the folder's name: `+revision`, 2 -> `plus-revision-s2`."""
    words = {"+": "plus-", "-": "no-"}
    name = f"{words[variant[0]]}{variant[1:]}" if variant[0] in words else variant
    safe = re.sub(r"[^\w.-]+", "_", name)[:80]
    # Sources may be named in any way; two that look alike as folders stay apart.
    return f"{safe}-s{seed}" if safe == name else f"{safe}-{fingerprint(name)[:6]}-s{seed}"


def _seeded(config: Config, name: str, seed: int) -> Config:
    campaign = replace(
        config.campaign,
        name=name,
        out=None,
        seeds=tuple(s + SEED_STRIDE * seed for s in config.campaign.seeds),
    )
    holdout = config.holdout
    if holdout.enabled and holdout.seed is None:
        holdout = replace(holdout, enabled=False)
    found = replace(
        config,
        campaign=campaign,
        holdout=holdout,
        policy=replace(config.policy, seed=config.policy.seed + seed),
        lab=replace(config.lab, seed=config.lab.seed + seed),
    )
    check_settings(found)
    return found
