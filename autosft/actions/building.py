"""Recipe -> build: actions applied, rows encoded and decontaminated, training seeds planned, receipt written.

rows.parquet      the final pool           tokens.npy   int32, all rows one after another
receipt.json      what was dropped and why mask.npy     uint8, 1 where the loss applies
plan-SEED.npz     see `plan`               offsets.npy  int64, rows + 1
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from autosft.actions.apply import apply_recipe, check_lineage
from autosft.actions.context import ActionContext
from autosft.actions.decontaminate import HELD_OUT, BenchmarkIndex, scan
from autosft.actions.guard import BuildGuard
from autosft.actions.plan import Plan, make_plan, strata_of
from autosft.artifacts import Artifact, ArtifactStore
from autosft.engine.ragged import Ragged
from autosft.errors import ArtifactError, EmptyPoolError, TemplateError
from autosft.identity import fingerprint
from autosft.pool import Pool, read_written_pool, write_pool
from autosft.types import ActionDiff, Recipe, TrainSettings

SCHEME = 1  # raise it when the same inputs would give other files
MAX_LISTED = 1000


def build(
    recipe: Recipe,
    pool: Pool,
    ctx: ActionContext,
    *,
    benchmarks: Sequence[BenchmarkIndex],
    store: ArtifactStore,
    train: TrainSettings,
    seeds: Sequence[int],
    guard: BuildGuard,
) -> Artifact:
    """Materialise a recipe; an equal build that is finished already is returned as it is.

    Args:
        recipe: What to do.
        pool: The pool the recipe is for.
        ctx: Encoder, taxonomy, programs and artifacts.
        benchmarks: Every dev suite, and the held-out ones as digests (`BenchmarkIndex.hashed`).
        store: Where the build goes.
        train: Its batch and sequence lengths decide steps and packing.
        seeds: Training seeds to plan for.
        guard: The campaign's facts.

    Returns:
        The artifact of kind `build`.

    Raises:
        GuardError: An invariant would be broken; nothing is written.
        ActionError: An action refuses, or no row is left.
    """
    guard.check_inputs(recipe, ctx.encoder.fingerprint, benchmarks, train)
    inputs = _inputs(recipe, ctx, benchmarks=benchmarks, train=train, seeds=seeds, guard=guard)
    key = fingerprint(inputs)
    found = store.find("build", key)
    if found is not None:
        return found
    # Dev digests only: what an action does with a row is reported row by row (I6).
    dev = tuple(index for index in benchmarks if not index.held_out)
    changed, diffs = apply_recipe(recipe, pool, replace(ctx, benchmarks=dev))
    check_lineage(changed)
    ready = _ready(changed, ctx, benchmarks)
    warnings = guard.check_passes(ready.pool, ready.lengths)
    strata = strata_of(ready.pool)
    plans = {seed: _plan(recipe, ready, train, guard, seed, strata) for seed in seeds}
    with store.create("build", key, inputs) as step:
        _write_arrays(step.path, ready.encoded)
        write_pool(ready.pool, step.path / "rows.parquet")
        for seed, plan in plans.items():
            plan.save(step.path / f"plan-{seed}.npz")
        step.data = {
            **_facts(recipe, ready, plans, diffs),
            "optimizer_steps": guard.optimizer_steps,
            "warnings": warnings + [f"{n} rows dropped: {reason}" for reason, n in ready.dropped.items()],
            "encoder": ctx.encoder.fingerprint,
        }
        receipt = _receipt(key, recipe, ready, benchmarks)
        (step.path / "receipt.json").write_bytes(orjson.dumps(receipt, option=orjson.OPT_INDENT_2))
    return store.load("build", key)


@dataclass(frozen=True)
class _Ready:
    """Rows that can be trained on, in step with their tokens, and what was left out."""

    pool: Pool
    encoded: Ragged
    dropped: dict[str, int]
    contaminated: dict[str, int] = field(default_factory=dict)
    listed: list[dict[str, str]] = field(default_factory=list)

    @property
    def lengths(self) -> NDArray[np.int64]:
        return self.encoded.lengths


@dataclass(frozen=True)
class Build:
    """A finished build, read from its artifact.

    Attributes:
        artifact: The artifact it was read from.
        receipt: What was dropped, and the benchmarks it was decontaminated against.
    """

    artifact: Artifact
    receipt: Mapping[str, Any]

    @cached_property
    def pool(self) -> Pool:
        """The final pool; row i of the arrays is its row i."""
        return read_written_pool(self.artifact.file("rows.parquet"))

    @cached_property
    def tokens(self) -> NDArray[np.int32]:
        """Token ids of all rows, one after another (memory-mapped)."""
        tokens: NDArray[np.int32] = self._array("tokens.npy")
        return tokens

    @cached_property
    def mask(self) -> NDArray[np.uint8]:
        """Loss mask of all rows (memory-mapped)."""
        mask: NDArray[np.uint8] = self._array("mask.npy")
        return mask

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Row i is `tokens[offsets[i]:offsets[i+1]]`."""
        return np.array(self._array("offsets.npy"))

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each row."""
        return np.diff(self.offsets)

    @property
    def seeds(self) -> tuple[int, ...]:
        """Training seeds it holds a plan for."""
        return tuple(int(seed) for seed in self.artifact.data["plans"])

    def plan(self, seed: int) -> Plan:
        """Read the plan of a training seed.

        Raises:
            ArtifactError: There is none for this seed.
        """
        if seed not in self.seeds:
            raise ArtifactError(
                f"no plan for seed {seed}",
                where=str(self.artifact.path),
                hint=f"has {list(self.seeds)}; build with it",
            )
        return Plan.load(self.artifact.file(f"plan-{seed}.npz"))

    def _array(self, name: str) -> Any:
        return np.load(self.artifact.file(name), mmap_mode="r", allow_pickle=False)


def load_build(artifact: Artifact) -> Build:
    """Read a build.

    Raises:
        ArtifactError: The artifact is no build, or its receipt cannot be read.
    """
    if artifact.kind != "build":
        raise ArtifactError(f"this is a {artifact.kind}, not a build", where=str(artifact.path))
    try:
        receipt = orjson.loads(artifact.file("receipt.json").read_bytes())
    except (OSError, ValueError) as error:
        raise ArtifactError(f"unreadable receipt: {error}", where=str(artifact.path)) from None
    return Build(artifact, receipt)


def _inputs(
    recipe: Recipe,
    ctx: ActionContext,
    *,
    benchmarks: Sequence[BenchmarkIndex],
    train: TrainSettings,
    seeds: Sequence[int],
    guard: BuildGuard,
) -> dict[str, Any]:
    programs = {call.params["program"] for call in recipe.actions if call.params.get("program")}
    return {
        "scheme": SCHEME,
        "recipe": recipe.to_json(),
        "encoder": ctx.encoder.fingerprint,
        "taxonomy": None if ctx.taxonomy is None else ctx.taxonomy.fingerprint,
        "programs": {str(name): ctx.program(str(name)).fingerprint for name in sorted(programs)},
        "benchmarks": [index.fingerprint for index in benchmarks],
        "batch_tokens": train.batch_tokens,
        "sequence_tokens": train.sequence_tokens,
        "max_passes": guard.max_passes,
        "seeds": list(seeds),
    }


def _ready(pool: Pool, ctx: ActionContext, benchmarks: Sequence[BenchmarkIndex]) -> _Ready:
    """Leave out rows that cannot be trained on and rows that hold evaluation text; encode the rest.

    Contaminated rows of dev suites are listed, those of held-out ones are only counted.
    """
    tokens, loss = ctx.encoder.counts(pool)
    empty, silent = tokens == 0, loss == 0
    reasons = {
        "the chat template cannot mask them exactly": int(empty.sum()),
        "no token of a response is left after truncation": int((silent & ~empty).sum()),
    }
    if silent.all():
        refused = ctx.encoder.encode_many(pool.take(np.flatnonzero(empty)[:1]).rows())
        hint = str(refused[0]) if refused and isinstance(refused[0], TemplateError) else ""
        raise EmptyPoolError(
            "no row can be trained on", where="build", hint=hint or "raise trainer.sequence_tokens"
        )
    able = pool.keep(~silent)
    hits = scan(able, benchmarks)
    bad = np.zeros(len(able), dtype=bool)
    for found in hits.values():
        bad |= found
    if bad.all():
        raise EmptyPoolError("every row holds evaluation text", where="build", hint="train on another pool")
    listed = [
        {"row": able.ids[i], "suite": name}
        for name, found in hits.items()
        if name != HELD_OUT
        for i in np.flatnonzero(found).tolist()
    ]
    kept = able.keep(~bad)
    return _Ready(
        kept,
        ctx.encoder.encode_pool(kept),
        {reason: n for reason, n in reasons.items() if n},
        {name: int(found.sum()) for name, found in hits.items()},
        listed[:MAX_LISTED],
    )


def _plan(
    recipe: Recipe,
    ready: _Ready,
    train: TrainSettings,
    guard: BuildGuard,
    seed: int,
    strata: NDArray[np.int64],
) -> Plan:
    return make_plan(
        ready.pool,
        ready.lengths,
        budget_tokens=recipe.budget_tokens,
        batch_tokens=train.batch_tokens,
        sequence_tokens=train.sequence_tokens,
        order=recipe.order,
        max_passes=guard.max_passes,
        recipe_seed=recipe.seed,
        seed=seed,
        strata=strata,
    )


def _receipt(key: str, recipe: Recipe, ready: _Ready, benchmarks: Sequence[BenchmarkIndex]) -> dict[str, Any]:
    return {
        "build": key,
        "recipe": recipe.to_json(),
        "benchmarks": [index.fingerprint for index in benchmarks],
        "contaminated": ready.contaminated,
        "contaminated_rows": ready.listed,
        "dropped": ready.dropped,
    }


def _write_arrays(folder: Path, encoded: Ragged) -> None:
    np.save(folder / "tokens.npy", encoded.ids)
    np.save(folder / "mask.npy", encoded.marks)
    np.save(folder / "offsets.npy", encoded.offsets)


def _facts(
    recipe: Recipe, ready: _Ready, plans: Mapping[int, Plan], diffs: list[ActionDiff]
) -> dict[str, Any]:
    pool, lengths = ready.pool, ready.lengths
    loss = ready.encoded.marked()
    unique = int(lengths[pool.weights > 0].sum())
    described: dict[str, dict[str, Any]] = {
        str(seed): {
            "sha": plan.sha,
            "train_tokens": int(lengths[plan.rows].sum()),
            "loss_tokens": int(loss[plan.rows].sum()),
            "steps": plan.steps,
        }
        for seed, plan in plans.items()
    }
    first = next(iter(plans.values()), None)
    trained = np.zeros(0, dtype=np.int64) if first is None else first.rows
    return {
        "budget_tokens": recipe.budget_tokens,
        "train_tokens": max((d["train_tokens"] for d in described.values()), default=0),
        "loss_tokens": max((d["loss_tokens"] for d in described.values()), default=0),
        "unique_tokens": unique,
        "passes": recipe.budget_tokens / unique,
        "rows": len(pool),
        "dropped": ready.dropped,
        "contaminated": ready.contaminated,
        "truncated": int(ready.encoded.cut.sum()),
        "pool": pool.fingerprint,
        "token_share": _shares(pool.sources, lengths, trained),
        "leaf_share": _shares([leaf or "" for leaf in pool.leaves], lengths, trained),
        "diffs": [asdict(diff) for diff in diffs],
        "families": dict(Counter(diff.family for diff in diffs if diff.family)),
        "plans": described,
        "base_order": recipe.order,
    }


def _shares(labels: list[str], lengths: NDArray[np.int64], trained: NDArray[Any]) -> dict[str, float]:
    """Share of training tokens of each label, in the first plan."""
    tokens: Counter[str] = Counter()
    for row, copies in zip(*np.unique(trained, return_counts=True), strict=True):
        tokens[labels[row]] += int(lengths[row] * copies)
    total = sum(tokens.values()) or 1
    return {label: count / total for label, count in sorted(tokens.items())}
