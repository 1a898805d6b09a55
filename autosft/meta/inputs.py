"""What a campaign starts from: pool, base, suites and what is decontaminated against, stored or read back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autosft.actions import BenchmarkIndex
from autosft.artifacts import ArtifactStore
from autosft.config import Config
from autosft.errors import ArtifactError, CampaignError, PoolError, VerifierError
from autosft.evals import Suite, load_suite, write_items
from autosft.identity import fingerprint
from autosft.meta.sealed import sealed_benchmarks
from autosft.pool import Pool, read_pool, read_written_pool, write_pool
from autosft.taxonomy import Taxonomy, annotate, assign, verify
from autosft.types import EvalItem

if TYPE_CHECKING:
    from autosft.meta.campaign import Facts


def initial_pool(config: Config, say: Callable[[str], None] | None = None) -> tuple[Pool, Any]:
    """Return the rows to start from, and the lab's manifest of defects (None for rows of one's own).

    `say` gets lines for people while a large pool is read.

    Raises:
        PoolError: A row cannot be read, or a source that was asked for has none.
    """
    manifest = None
    if config.pool.path is None:
        from autosft.lab.pool import make_pool

        pool, manifest = make_pool(config.lab.rows, config.lab.seed)
    else:
        pool, _ = read_pool(
            config.pool.path, bad_rows=config.pool.bad_rows, bad_files=config.pool.bad_files, say=say
        )
    if config.pool.sources is not None:
        pool = _of_sources(pool, config.pool.sources)
    return annotate(pool) if config.pool.infer_requirements else pool, manifest


def _of_sources(pool: Pool, wanted: tuple[str, ...]) -> Pool:
    known = set(pool.sources)
    unknown = [name for name in wanted if name not in known]
    if unknown or not wanted:
        what = f"no row is of source {unknown[0]!r}" if unknown else "no source is named"
        raise PoolError(what, where="pool.sources", hint=f"the pool has {', '.join(sorted(known))}")
    return pool.take([index for index, source in enumerate(pool.sources) if source in set(wanted)])


def check_requirements(pool: Pool) -> None:
    """Check that every requirement of a pool's rows can be decided.

    Raises:
        PoolError: One cannot; names the row.
    """
    known: set[str] = set()
    for row in pool.rows():
        for requirement in row.requirements:
            key = fingerprint([requirement.id, dict(requirement.kwargs)])
            if key in known:
                continue
            try:
                verify(requirement, row.prompt, row.response)
            except VerifierError as error:
                raise PoolError(
                    f"a requirement cannot be checked: {error}",
                    where=f"row {row.id} (source {row.source})",
                    hint="correct or remove it from the row's requirements",
                ) from None
            known.add(key)


def base_folder(config: Config) -> Path:
    """Return the folder of the base model."""
    if config.model.path is not None:
        return Path(config.model.path)
    from autosft.lab.base import base_dir

    return base_dir()


def suites_of(config: Config) -> list[Suite]:
    """Load the primary and guard suites."""
    loaded = []
    for name in (*config.suite.names, *config.suite.guard):
        settings: dict[str, Any] = {}
        if name == "lab":
            settings = {"seed": config.lab.seed, "prompts_per_leaf": config.lab.prompts_per_leaf}
        elif name == "jsonl":
            # Settings, frozen facts and scores call it by the name that the settings have for it.
            settings = {"path": config.suite.path, "name": name}
        loaded.append(load_suite(name, **settings))
    return loaded


def store_items(store: ArtifactStore, config: Config) -> Path:
    """Store the suites' items; return their file."""
    suites = suites_of(config)
    items = [item for suite in suites for item in suite.items]
    key = fingerprint([suite.fingerprint for suite in suites])
    if store.find("items", key) is None:
        with store.create("items", key) as step:
            write_items(items, step.path / "items.jsonl")
            step.data = {"suites": {suite.name: suite.fingerprint for suite in suites}, "n": len(items)}
    return store.load("items", key).file("items.jsonl")


def stored_inputs(
    store: ArtifactStore, facts: Facts, config: Config, taxonomy: Taxonomy
) -> tuple[Pool, Path]:
    """Read the campaign's pool and items; damaged ones are made anew where their source is unchanged."""
    try:
        path = store.load("pool", facts.pool, check_files=True).file("pool.parquet")
    except ArtifactError as error:
        pool = assign(initial_pool(config)[0], taxonomy)
        _require_same(pool.fingerprint, facts.pool, error, "pool")
        _set_aside(store, "pool", facts.pool)
        path = store_pool(store, pool)
    try:
        items = store.load("items", facts.items, check_files=True).file("items.jsonl")
    except ArtifactError as error:
        _require_same(fingerprint([s.fingerprint for s in suites_of(config)]), facts.items, error, "suite")
        _set_aside(store, "items", facts.items)
        items = store_items(store, config)
    return read_written_pool(path), items


def _set_aside(store: ArtifactStore, kind: str, key: str) -> None:
    if store.folder(kind, key).exists():
        store.quarantine(kind, key)


def _require_same(found: str, wanted: str, error: ArtifactError, what: str) -> None:
    if found != wanted:
        raise CampaignError(
            f"its {what} is damaged ({error.what}) and its source has changed since",
            where=error.where,
            hint=f"restore the {what} the campaign started with, or start a new campaign with --out",
        )


def benchmarks_of(items: tuple[EvalItem, ...], config: Config, folder: Path) -> tuple[BenchmarkIndex, ...]:
    """Return what builds are decontaminated against: dev suites, and sealed ones as digests (I5, I6)."""
    by_suite: dict[str, list[EvalItem]] = {}
    for item in items:
        by_suite.setdefault(item.suite, []).append(item)
    suites = [Suite(name, tuple(members)) for name, members in sorted(by_suite.items())]
    dev = [BenchmarkIndex.from_items(suite.name, suite.reference_texts()) for suite in suites]
    return (*dev, *sealed_benchmarks(config, folder, suites))


def store_pool(store: ArtifactStore, pool: Pool) -> Path:
    """Store a pool; return its file."""
    if store.find("pool", pool.fingerprint) is None:
        with store.create("pool", pool.fingerprint) as step:
            write_pool(pool, step.path / "pool.parquet")
            step.data = {"rows": len(pool)}
    return store.load("pool", pool.fingerprint).file("pool.parquet")
