"""How much each planted defect costs: one arm per action family, mended by the manifest, at one budget.

The arms go through the same build and the same executor as a campaign's rounds, so what they measure is what
a campaign can gain. Finished arms lie in an artifact store and are not trained twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autosft.actions.building import build
from autosft.actions.context import ActionContext
from autosft.actions.decontaminate import BenchmarkIndex
from autosft.actions.guard import BuildGuard
from autosft.actions.plan import optimizer_steps
from autosft.artifacts import ArtifactStore
from autosft.errors import ConfigError, ExecutorError
from autosft.evals.stats import Comparison, Estimate, compare, estimate, seed_noise_floor
from autosft.evals.suites import load_suite, write_items
from autosft.evals.table import ScoreTable, campaign_score
from autosft.executor import base_fingerprint, execute
from autosft.lab.base import base_dir
from autosft.lab.oracle import mend
from autosft.lab.pool import Manifest, make_pool
from autosft.pool import Pool, RowEncoder
from autosft.taxonomy import Taxonomy
from autosft.types import FAMILIES, Family, GenerateSettings, Recipe, TrainSettings

UNTOUCHED, ORACLE = "untouched", "oracle"
ARMS: tuple[str, ...] = (UNTOUCHED, *FAMILIES, ORACLE)


@dataclass(frozen=True, slots=True)
class ArmSettings:
    """What all arms of a table share.

    Attributes:
        rows: Rows of the pool.
        lab_seed: Seed of the defects and of the suite.
        seeds: Training seeds.
        prompts_per_leaf: Prompts of each leaf of the dev suite.
        epochs: Budget as passes over the untouched pool.
        slots: Training runs side by side.
        train: Trainer settings.
        generate: Generation settings.
    """

    rows: int = 3000
    lab_seed: int = 0
    seeds: tuple[int, ...] = (0, 1, 2)
    prompts_per_leaf: int = 60
    epochs: float = 1.5
    slots: int = 1
    train: TrainSettings = field(default_factory=TrainSettings)
    generate: GenerateSettings = field(default_factory=GenerateSettings)


@dataclass(frozen=True, slots=True)
class ArmResult:
    """One arm, measured.

    Attributes:
        arm: Name: `untouched`, a family, families joined by `+`, or `oracle`.
        score: Its score over leaves, items and training seeds, with interval.
        gain: Difference to the untouched pool, paired by item; None for the untouched pool itself.
        rows: Rows of its build.
        unique_tokens: Their tokens.
        train_tokens: Tokens trained on, mean over seeds.
        leaves: Leaf -> score.
    """

    arm: str
    score: Estimate
    gain: Comparison | None
    rows: int
    unique_tokens: int
    train_tokens: int
    leaves: dict[str, float]


def families_of(arm: str) -> tuple[Family, ...]:
    """Return the families an arm mends.

    Raises:
        ConfigError: It names something that is no family.
    """
    if arm == UNTOUCHED:
        return ()
    if arm == ORACLE:
        return FAMILIES
    wanted = arm.split("+")
    unknown = [name for name in wanted if name not in FAMILIES]
    if unknown:
        hint = f"use {', '.join(ARMS)}, or families joined by +"
        raise ConfigError(f"no arm {unknown[0]!r}", where="arms", hint=hint)
    return tuple(family for family in FAMILIES if family in wanted)


def measure_arms(
    folder: Path,
    settings: ArmSettings | None = None,
    arms: Sequence[str] = ARMS,
    on_run: Callable[[str, float], None] | None = None,
) -> list[ArmResult]:
    """Build, train and score the arms.

    Args:
        folder: Artifacts of builds and runs; arms that lie here already are read, not trained.
        settings: What all arms share.
        arms: Which arms, see `families_of`; the untouched pool is always measured, first.
        on_run: Called with each arm and its score as it is known; intervals need all arms.

    Raises:
        ConfigError: An arm is unknown.
        ExecutorError: A run failed for good.
    """
    settings = settings or ArmSettings()
    names = [UNTOUCHED, *(arm for arm in dict.fromkeys(arms) if arm != UNTOUCHED)]
    mends = {name: families_of(name) for name in names}
    pool, manifest = make_pool(settings.rows, settings.lab_seed)
    bench = _Bench(folder, settings, pool, manifest)
    tables: dict[str, ScoreTable] = {}
    facts: dict[str, tuple[int, int, int]] = {}
    for name in names:
        tables[name], facts[name] = bench.run(mends[name])
        if on_run is not None:
            on_run(name, campaign_score(tables[name]))
    # Noise between training seeds is pooled over all arms: three seeds of two arms alone say little about it.
    noise = seed_noise_floor(tables.values())
    results = []
    for name, table in tables.items():
        gain = None if name == UNTOUCHED else compare(tables[UNTOUCHED], table, noise)
        leaves = {leaf: float(table.leaf(leaf).scores_SI.mean()) for leaf in table.leaf_names}
        results.append(ArmResult(name, estimate(table, noise), gain, *facts[name], leaves))
    return results


class _Bench:
    """Everything the arms of one pool share."""

    def __init__(self, folder: Path, settings: ArmSettings, pool: Pool, manifest: Manifest) -> None:
        self.settings, self.pool, self.manifest = settings, pool, manifest
        self.base = base_dir()
        self.store = ArtifactStore(folder)
        encoder = RowEncoder(self.base, settings.train.sequence_tokens)
        self.ctx = ActionContext(settings.lab_seed, encoder, Taxonomy.load("lab"))
        suite = load_suite("lab", seed=settings.lab_seed, prompts_per_leaf=settings.prompts_per_leaf)
        self.benchmarks = (BenchmarkIndex.from_items(suite.name, suite.reference_texts()),)
        folder.mkdir(parents=True, exist_ok=True)
        self.items_path = folder / f"items-{suite.fingerprint}.jsonl"
        write_items(suite.items, self.items_path)
        unique = int(encoder.counts(pool)[0].sum())
        self.budget_tokens = max(1, round(unique * settings.epochs))
        self.guard = BuildGuard(
            budget_tokens=self.budget_tokens,
            optimizer_steps=optimizer_steps(self.budget_tokens, settings.train.batch_tokens),
            unique_tokens=unique,
            encoder=encoder.fingerprint,
            order="file",
            benchmarks=tuple(index.fingerprint for index in self.benchmarks),
        )

    def run(self, families: Sequence[Family]) -> tuple[ScoreTable, tuple[int, int, int]]:
        """Return an arm's scores, and the rows, unique tokens and mean training tokens of its build."""
        mended = mend(self.pool, self.manifest, families)
        recipe = Recipe(mended.fingerprint, (), self.budget_tokens, "file", self.settings.lab_seed)
        made = build(
            recipe,
            mended,
            self.ctx,
            benchmarks=self.benchmarks,
            store=self.store,
            train=self.settings.train,
            seeds=self.settings.seeds,
            guard=self.guard,
        )
        receipts = execute(
            self.base,
            base_fingerprint(self.base),
            made,
            self.items_path,
            self.settings.seeds,
            self.settings.train,
            self.settings.generate,
            self.store,
            self.settings.slots,
        )
        columns = {}
        for receipt in receipts:
            if receipt.status != "ok":
                raise ExecutorError(
                    f"{receipt.cause}: {receipt.detail}", where=f"arm {'+'.join(families) or UNTOUCHED}"
                )
            columns[receipt.seed] = self._columns(receipt.scores)
        tokens = [int(plan["train_tokens"]) for plan in made.data["plans"].values()]
        facts = (int(made.data["rows"]), int(made.data["unique_tokens"]), round(sum(tokens) / len(tokens)))
        return ScoreTable.from_columns(columns), facts

    def _columns(self, scores: str) -> dict[str, list[object]]:
        import pyarrow.parquet as pq

        path = self.store.load("score", scores).file("items.parquet")
        columns: dict[str, list[object]] = pq.read_table(path, columns=["item", "leaf", "strict"]).to_pydict()
        return columns
