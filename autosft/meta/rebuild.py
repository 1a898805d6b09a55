"""A recipe built again, outside its campaign: equal inputs give equal bytes, and this shows it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from autosft.actions import ActionContext, BenchmarkIndex, BuildGuard, build, load_build
from autosft.artifacts import Artifact, ArtifactStore
from autosft.config import Config, config_from_json, load_config
from autosft.errors import ActionError, ArtifactError, CampaignError
from autosft.evals import Suite, load_suite, read_items
from autosft.executor import base_fingerprint
from autosft.meta.campaign import CONFIG, Facts, read_facts
from autosft.meta.sealed import HOLDOUT
from autosft.pool import Pool, RowEncoder, read_pool, read_written_pool
from autosft.taxonomy import Taxonomy, assign
from autosft.types import EvalItem, Recipe, TrainSettings


@dataclass(frozen=True)
class _Surroundings:
    """Everything besides the recipe that decides a build."""

    pool: Pool
    ctx: ActionContext
    benchmarks: tuple[BenchmarkIndex, ...]
    train: TrainSettings
    seeds: tuple[int, ...]
    guard: BuildGuard


def read_recipe(path: Path) -> Recipe:
    """Read a recipe from a file: its own JSON, or a receipt or record that holds one under `recipe`.

    Raises:
        ActionError: The file cannot be read or holds no recipe.
    """
    hint = "give a recipe's JSON or the receipt.json of a build"
    try:
        data = orjson.loads(path.read_bytes())
    except OSError as error:
        raise ActionError(f"cannot be read ({error.strerror})", where=str(path), hint=hint) from None
    except ValueError as error:
        raise ActionError(f"is not JSON ({error})", where=str(path), hint=hint) from None
    if isinstance(data, Mapping) and isinstance(data.get("recipe"), Mapping):
        data = data["recipe"]
    try:
        return Recipe.from_json(data)
    except (KeyError, TypeError, AttributeError) as error:
        raise ActionError(f"holds no recipe ({error!r})", where=str(path), hint=hint) from None


def rebuild(recipe: Recipe, campaign: Path, out: Path) -> dict[str, Any]:
    """Build a recipe with a campaign's pool, base, suites and settings into another folder.

    Args:
        recipe: The recipe; its budget, order and pool must be the campaign's.
        campaign: Campaign folder; nothing in it is written.
        out: Folder of artifacts that receives the build.

    Returns:
        `build` (fingerprint), `path`, `identical` (every file equals the campaign's own build of this recipe,
        or None where it has none), `differs` (names of files that do not), `facts` and `receipt`.

    Raises:
        CampaignError: There is no campaign in the folder.
        GuardError: An invariant of the campaign would be broken.
        ActionError: The recipe cannot be applied.
    """
    facts = read_facts(campaign)
    store = ArtifactStore(campaign / "artifacts")
    around = _of_campaign(facts, campaign, store)
    built = _build(recipe, around, out)
    try:
        own: Artifact | None = store.load("build", built.fingerprint)
    except ArtifactError:
        own = None
    differs = [] if own is None else sorted(n for n in own.files if own.files[n] != built.files.get(n))
    return {**_described(built), "identical": None if own is None else not differs, "differs": differs}


def build_alone(recipe: Recipe, overrides: Sequence[str], out: Path) -> dict[str, Any]:
    """Build a recipe without a campaign, with the pool, base and suites that settings name.

    Args:
        recipe: The recipe; its pool must be the one the settings name.
        overrides: Settings, such as `pool=PATH` and `model=PATH`.
        out: Folder of artifacts that receives the build.

    Raises:
        ConfigError: The settings are unusable.
        ActionError: The recipe is for another pool or cannot be applied.
    """
    config = load_config(overrides)
    return {**_described(_build(recipe, _of_settings(config, recipe), out)), "identical": None, "differs": []}


def _build(recipe: Recipe, around: _Surroundings, out: Path) -> Artifact:
    out.mkdir(parents=True, exist_ok=True)
    return build(
        recipe,
        around.pool,
        around.ctx,
        benchmarks=around.benchmarks,
        store=ArtifactStore(out),
        train=around.train,
        seeds=around.seeds,
        guard=around.guard,
    )


def _described(built: Artifact) -> dict[str, Any]:
    return {
        "build": built.fingerprint,
        "path": str(built.path),
        "facts": dict(built.data),
        "receipt": dict(load_build(built).receipt),
        "files": dict(built.files),
    }


def _of_campaign(facts: Facts, folder: Path, store: ArtifactStore) -> _Surroundings:
    from autosft.meta.claims import FIRST_FRESH_SEED

    config = _stored_config(folder)
    pool = read_written_pool(store.load("pool", facts.pool, check_files=True).file("pool.parquet"))
    items = read_items(store.load("items", facts.items, check_files=True).file("items.jsonl"))
    base = Path(facts.base)
    if base_fingerprint(base) != facts.base_fingerprint:
        raise CampaignError(
            "the base changed since the campaign started",
            where=str(base),
            hint="restore it; a build depends on its tokenizer",
        )
    taxonomy = Taxonomy.load("lab" if "lab" in config.suite.names else "ifeval")
    encoder = RowEncoder(base, config.trainer.sequence_tokens)
    seeds, claims = tuple(config.campaign.seeds), config.campaign.claim_seeds
    first = max(FIRST_FRESH_SEED, max(seeds) + 1)
    guard = BuildGuard(
        budget_tokens=facts.budget_tokens,
        optimizer_steps=facts.optimizer_steps,
        unique_tokens=facts.unique_tokens,
        encoder=facts.encoder,
        order=config.pool.order,
        benchmarks=facts.benchmarks,
        max_passes=config.campaign.max_passes,
    )
    return _Surroundings(
        pool=pool,
        ctx=ActionContext(0, encoder, taxonomy, config.programs, store),
        benchmarks=(*_dev_benchmarks(items), *_sealed_digests(folder)),
        train=config.trainer,
        seeds=(*seeds, *range(first, first + claims)),
        guard=guard,
    )


def _of_settings(config: Config, recipe: Recipe) -> _Surroundings:
    taxonomy = Taxonomy.load("lab" if "lab" in config.suite.names else "ifeval")
    if config.pool.path is None:
        from autosft.lab.pool import make_pool

        pool = make_pool(config.lab.rows, config.lab.seed)[0]
    else:
        pool, _ = read_pool(Path(config.pool.path), bad_rows=config.pool.bad_rows)
    pool = assign(pool, taxonomy)
    if config.model.path is None:
        from autosft.lab.base import base_dir

        base = base_dir()
    else:
        base = Path(config.model.path)
    encoder = RowEncoder(base, config.trainer.sequence_tokens)
    benchmarks = _dev_benchmarks([item for suite in _suites(config) for item in suite.items])
    guard = BuildGuard(
        budget_tokens=recipe.budget_tokens,
        optimizer_steps=math.ceil(recipe.budget_tokens / config.trainer.batch_tokens),
        unique_tokens=int(encoder.counts(pool)[0].sum()),
        encoder=encoder.fingerprint,
        order=recipe.order,
        benchmarks=tuple(index.fingerprint for index in benchmarks),
        max_passes=config.campaign.max_passes,
    )
    ctx = ActionContext(0, encoder, taxonomy, config.programs, None)
    return _Surroundings(pool, ctx, benchmarks, config.trainer, tuple(config.campaign.seeds), guard)


def _stored_config(folder: Path) -> Config:
    path = folder / CONFIG
    try:
        return config_from_json(orjson.loads(path.read_bytes()))
    except (OSError, ValueError) as error:
        raise CampaignError(
            f"its stored configuration cannot be read ({error})", where=str(path), hint="restore the file"
        ) from None


def _suites(config: Config) -> list[Suite]:
    given: dict[str, dict[str, Any]] = {
        "lab": {"seed": config.lab.seed, "prompts_per_leaf": config.lab.prompts_per_leaf},
        "jsonl": {"path": config.suite.path},
    }
    return [load_suite(name, **given.get(name, {})) for name in (*config.suite.names, *config.suite.guard)]


def _dev_benchmarks(items: Sequence[EvalItem]) -> tuple[BenchmarkIndex, ...]:
    by_suite: dict[str, list[EvalItem]] = {}
    for item in items:
        by_suite.setdefault(item.suite, []).append(item)
    suites = [Suite(name, tuple(members)) for name, members in sorted(by_suite.items())]
    return tuple(BenchmarkIndex.from_items(suite.name, suite.reference_texts()) for suite in suites)


def _sealed_digests(folder: Path) -> tuple[BenchmarkIndex, ...]:
    path = folder / HOLDOUT
    if not path.exists():
        return ()
    try:
        return (BenchmarkIndex.from_json(orjson.loads(path.read_bytes())["digests"]),)
    except (ValueError, KeyError, TypeError) as error:
        raise CampaignError(
            f"the held-out digests cannot be read ({error})", where=str(path), hint="restore the file"
        ) from None
