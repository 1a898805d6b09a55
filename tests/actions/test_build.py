# ruff: noqa: E501
"""Builds: arrays, budget, guards that refuse before training, receipts, rebuilds in another process."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson
import pytest

from autosft.actions import (
    ActionContext,
    BenchmarkIndex,
    Build,
    BuildGuard,
    build,
    load_build,
    optimizer_steps,
    require_clean,
)
from autosft.artifacts import ArtifactStore
from autosft.errors import (
    ActionError,
    ArtifactError,
    BudgetError,
    ContaminationError,
    EmptyPoolError,
    FrozenSettingsError,
    LineageError,
)
from autosft.pool import Pool, RowEncoder, new_row, write_pool
from autosft.types import ActionCall, Recipe, TrainSettings
from tests.pool.tokenizers_for_tests import CHATML, FORGETFUL, write_tokenizer

TRAIN = TrainSettings(batch_tokens=512, sequence_tokens=256)
DEV = BenchmarkIndex.from_items("dev", ["A prompt that no row has."])
SEALED = BenchmarkIndex.from_items("ifbench", ["Another prompt that no row has."]).hashed()


class Bench:
    """A campaign's frozen facts around a pool, with a `make` that builds."""

    def __init__(self, pool: Pool, ctx: ActionContext, store: ArtifactStore) -> None:
        self.pool, self.ctx, self.store = pool, ctx, store
        self.unique = int(ctx.tokens(pool).sum())
        self.benchmarks = [DEV, SEALED]
        self.guard = self.guard_for(self.unique)

    def guard_for(self, budget: int, **more) -> BuildGuard:
        facts = {
            "budget_tokens": budget,
            "optimizer_steps": optimizer_steps(budget, TRAIN.batch_tokens),
            "unique_tokens": self.unique,
            "encoder": self.ctx.encoder.fingerprint,
            "order": "shuffle",
            "benchmarks": tuple(b.fingerprint for b in self.benchmarks),
        }
        return BuildGuard(**(facts | more))

    def recipe(self, *actions: tuple[str, dict], **more) -> Recipe:
        calls = tuple(ActionCall(kind, params) for kind, params in actions)
        return replace(Recipe(self.pool.fingerprint, calls, self.guard.budget_tokens), **more)

    def make(self, *actions: tuple[str, dict], seeds=(0, 1), recipe: Recipe | None = None) -> Build:
        artifact = build(
            recipe or self.recipe(*actions), self.pool, self.ctx, benchmarks=self.benchmarks, store=self.store,
            train=TRAIN, seeds=seeds, guard=self.guard,
        )  # fmt: skip
        return load_build(artifact)


@pytest.fixture
def bench(lab_pool, ctx, store) -> Bench:
    return Bench(lab_pool, ctx, store)


def files_sha(folder: Path) -> dict[str, str]:
    names = [
        "tokens.npy",
        "mask.npy",
        "offsets.npy",
        "plan-0.npz",
        "plan-1.npz",
        "receipt.json",
        "rows.parquet",
    ]
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}


def test_arrays_are_the_encoded_rows(bench):
    made = bench.make(("prune/verifier", {}))
    assert len(made.pool) == len(made.lengths) == made.artifact.data["rows"]
    for i in range(0, len(made.pool), 17):
        encoded = bench.ctx.encoder.encode(made.pool.row(i))
        span = slice(made.offsets[i], made.offsets[i + 1])
        assert made.tokens[span].tolist() == encoded.ids.tolist()
        assert made.mask[span].tolist() == encoded.loss_mask.tolist()
    assert made.tokens.dtype == np.int32 and made.mask.dtype == np.uint8 and made.offsets.dtype == np.int64


def test_every_build_has_the_same_tokens_and_steps(bench):
    builds = [
        bench.make(),
        bench.make(("prune/verifier", {"checks": "form"})),
        bench.make(("mix/leaf_weights", {"plain": 0.3})),
        bench.make(("order/curriculum", {})),
    ]
    for made in builds:
        bench.guard.check(made)
        assert made.artifact.data["train_tokens"] == bench.guard.budget_tokens
        for seed in (0, 1):
            plan = made.plan(seed)
            assert made.lengths[plan.rows].sum() == bench.guard.budget_tokens
            assert plan.steps == bench.guard.optimizer_steps
            loss = sum(int(made.mask[made.offsets[r] : made.offsets[r + 1]].sum()) for r in plan.rows)
            assert loss == made.artifact.data["plans"][str(seed)]["loss_tokens"] > 0
    assert builds[0].artifact.data["families"] == {}
    assert builds[1].artifact.data["families"] == {"prune": 1}
    assert abs(sum(builds[2].artifact.data["token_share"].values()) - 1) < 1e-9


def test_weights_are_shares_of_tokens(bench):
    source = bench.pool.sources[0]
    made = bench.make(("mix/source_shares", {"shares": {source: 0.6}}))
    assert made.artifact.data["token_share"][source] == pytest.approx(0.6, abs=0.01)


def test_order_actions_reach_the_plan(bench):
    made = bench.make(("order/verified_last", {}))
    passing = [bool(r.requirements) and all(bench.ctx.passes(r).values()) for r in made.pool.rows()]
    fed = np.array(passing)[made.plan(0).rows]
    border = int((~fed).sum())
    assert not fed[: border - 5].any() and fed[border + 5 :].all()
    assert not np.array_equal(made.plan(0).rows, made.plan(1).rows)


def test_an_equal_build_is_not_made_twice(bench, monkeypatch):
    first = bench.make(("prune/verifier", {}))
    monkeypatch.setattr("autosft.actions.building.apply_recipe", lambda *a: pytest.fail("built again"))
    assert bench.make(("prune/verifier", {})).artifact == first.artifact


REBUILD = """
import sys
from pathlib import Path
from autosft.actions import *
from autosft.artifacts import ArtifactStore
from autosft.pool import RowEncoder, read_pool
from autosft.taxonomy import Taxonomy
from autosft.types import Recipe, TrainSettings
import orjson
tokenizer, pool_file, out, data = sys.argv[1:]
data = orjson.loads(Path(data).read_bytes())
ctx = ActionContext(0, RowEncoder(tokenizer, 256), Taxonomy.load("default"), ("lab",))
guard = BuildGuard(**{**data["guard"], "benchmarks": tuple(data["guard"]["benchmarks"])})
made = build(Recipe.from_json(data["recipe"]), read_pool(pool_file)[0], ctx,
             benchmarks=[BenchmarkIndex.from_json(b) for b in data["benchmarks"]], store=ArtifactStore(Path(out)),
             train=TrainSettings(batch_tokens=512, sequence_tokens=256), seeds=(0, 1), guard=guard)
print(made.path)
"""


def test_another_process_rebuilds_the_same_bytes(bench, tmp_path):
    actions = [
        ("repair/verifier_edit", {}),
        ("resupervise/program", {"program": "lab"}),
        ("repair/prompt_reword", {"frac": 0.4}),
        ("synthesize/template", {"program": "lab", "leaf": "json", "rows": 20}),
        ("prune/verifier", {}),
        ("mix/temperature", {"temperature": 2.0, "by": "leaf"}),
        ("order/verified_last", {"clean_frac": 0.5}),
    ]
    made = bench.make(*actions)
    write_pool(bench.pool, tmp_path / "pool.parquet")
    facts = {
        "recipe": bench.recipe(*actions).to_json(),
        "guard": {f: getattr(bench.guard, f) for f in BuildGuard.__dataclass_fields__},
        "benchmarks": [b.to_json() for b in bench.benchmarks],
    }
    (tmp_path / "facts.json").write_bytes(orjson.dumps(facts))
    paths = [
        bench.ctx.encoder.tokenizer_dir,
        tmp_path / "pool.parquet",
        tmp_path / "other",
        tmp_path / "facts.json",
    ]
    command = [sys.executable, "-c", REBUILD, *map(str, paths)]
    env = {"PYTHONHASHSEED": "77", "PATH": "", "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    other = Path(done.stdout.strip().splitlines()[-1])
    assert other.name == made.artifact.fingerprint
    assert files_sha(other) == files_sha(made.artifact.path)


# --- leaks


def leaky(bench: Bench) -> tuple[str, str]:
    words = " ".join(f"word{i}" for i in range(40))
    dev, held = f"Please repeat: {words}", bench.pool.row(3).prompt
    bench.benchmarks = [
        BenchmarkIndex.from_items("dev", [dev]),
        BenchmarkIndex.from_items("secret", [held]).hashed(),
    ]
    bench.pool = bench.pool.append([new_row("leak", [("user", "Hello"), ("assistant", dev)])])
    bench.unique = int(bench.ctx.tokens(bench.pool).sum())
    bench.guard = bench.guard_for(bench.unique)
    return dev, held


def test_a_planted_leak_is_dropped_and_only_dev_rows_are_listed(bench):
    dev, held = leaky(bench)
    made = bench.make()
    assert made.artifact.data["contaminated"] == {
        "dev": 1,
        "held_out": sum(r.prompt == held for r in bench.pool.rows()),
    }
    assert all(dev not in r.response and r.prompt != held for r in made.pool.rows())
    listed = made.receipt["contaminated_rows"]
    assert listed == [{"row": bench.pool.ids[-1], "suite": "dev"}]
    text = (made.artifact.path / "receipt.json").read_text() + (
        made.artifact.path / "record.json"
    ).read_text()
    assert "secret" not in text and held not in text


def test_a_leak_made_by_an_action_is_dropped_too(bench):
    edited = bench.make(("repair/prompt_reword", {})).pool
    new = next(r for r in edited.rows() if r.made_by == "repair/prompt_reword")
    bench.benchmarks = [BenchmarkIndex.from_items("dev", [new.prompt])]
    bench.guard = bench.guard_for(bench.unique)
    made = bench.make(("repair/prompt_reword", {}))
    assert made.artifact.data["contaminated"]["dev"] >= 1
    assert new.id not in made.pool.ids


def test_a_pool_of_leaks_is_refused(bench):
    bench.benchmarks = [BenchmarkIndex.from_items("dev", [r.prompt for r in bench.pool.rows()])]
    bench.guard = bench.guard_for(bench.unique)
    with pytest.raises(EmptyPoolError, match="evaluation text"):
        bench.make()


# --- guards


def nothing_written(bench: Bench) -> bool:
    return not (bench.store.root / "build").exists()


def test_missing_benchmarks_are_refused_before_anything_runs(bench):
    bench.benchmarks = [DEV]
    with pytest.raises(ContaminationError, match=SEALED.fingerprint):
        bench.make()
    assert nothing_written(bench)


@pytest.mark.parametrize("change", [{"budget_tokens": 1000}, {"budget_tokens": 10**9}])
def test_another_budget_is_refused(bench, change):
    with pytest.raises(BudgetError, match="the campaign trains"):
        bench.make(recipe=bench.recipe(**change))
    assert nothing_written(bench)


def test_another_number_of_steps_is_refused(bench):
    bench.guard = replace(bench.guard, optimizer_steps=bench.guard.optimizer_steps + 1)
    with pytest.raises(BudgetError, match="same budget and steps"):
        bench.make()


def test_another_base_order_or_encoder_is_refused(bench):
    with pytest.raises(FrozenSettingsError, match="base order 'file'"):
        bench.make(recipe=bench.recipe(order="file"))
    bench.guard = replace(bench.guard, encoder="0" * 24)
    with pytest.raises(FrozenSettingsError, match="encoder"):
        bench.make()
    assert nothing_written(bench)


def test_too_many_passes_are_refused(bench):
    with pytest.raises(BudgetError, match="unique tokens, at most 10"):
        bench.make(("prune/length", {"max_tokens": int(np.quantile(bench.ctx.tokens(bench.pool), 0.02))}))
    assert nothing_written(bench)


def test_too_many_copies_of_one_row_are_refused(bench):
    leaf = next(leaf for leaf in bench.pool.leaves if leaf)
    twice = [("mix/leaf_weights", {"factors": {leaf: 10.0}})] * 3
    with pytest.raises(BudgetError, match=rf"leaf {leaf}\) would be trained on"):
        bench.make(*twice)
    assert nothing_written(bench)


def test_few_unique_tokens_are_warned_about(bench):
    limit = int(np.quantile(bench.ctx.tokens(bench.pool), 0.4))
    warnings = bench.make(("prune/length", {"max_tokens": limit})).artifact.data["warnings"]
    assert any("under half of round 0" in w for w in warnings)
    assert bench.make().artifact.data["warnings"] == []


def test_rows_without_lineage_are_refused(bench):
    for fields in (
        {"made_by": "x/y"},
        {"made_by": "x/y", "method": "edit", "verdicts": {"a": True}},
        {"made_by": "x/y", "method": "edit", "parent": "p"},
        {"parent": "p", "method": "edit", "verdicts": {"a": True}},
        {"made_by": "x/y", "method": "new"},
    ):
        orphan = replace(new_row("s", [("user", "a"), ("assistant", str(fields))]), **fields)
        bench.pool = bench.pool.append([orphan])
        bench.unique = int(bench.ctx.tokens(bench.pool).sum())
        bench.guard = bench.guard_for(bench.unique)
        with pytest.raises(LineageError, match=r"lacks"):
            bench.make()
        bench.pool = bench.pool.keep([True] * (len(bench.pool) - 1) + [False])
    assert nothing_written(bench)


def test_a_recipe_for_another_pool_is_refused(bench):
    with pytest.raises(ActionError, match="the recipe is for pool"):
        bench.make(recipe=bench.recipe(pool="0" * 24))


def test_a_failing_action_is_named_by_its_place(bench):
    with pytest.raises(ActionError, match="action 2 prune/source"):
        bench.make(("prune/verifier", {}), ("prune/source", {"sources": ["nope"]}))
    assert nothing_written(bench)


# --- receipts and tampering


def rewrite_receipt(made: Build, **changes) -> Build:
    path = made.artifact.path / "receipt.json"
    path.write_bytes(orjson.dumps({**orjson.loads(path.read_bytes()), **changes}))
    return load_build(made.artifact)


def test_a_receipt_of_another_build_is_refused(bench):
    other = bench.make(("prune/verifier", {}))
    made = rewrite_receipt(bench.make(), build=other.artifact.fingerprint)
    for check in (lambda: require_clean(made, [DEV]), lambda: bench.guard.check(made)):
        with pytest.raises(ContaminationError, match="written for build"):
            check()


def test_a_receipt_without_a_benchmark_is_refused(bench):
    made = rewrite_receipt(bench.make(), benchmarks=[DEV.fingerprint])
    require_clean(made, [DEV])
    with pytest.raises(ContaminationError, match=SEALED.fingerprint):
        require_clean(made, [DEV.fingerprint, SEALED.fingerprint])


def test_a_plan_of_another_length_is_refused(bench):
    made = bench.make()
    plan = made.plan(0)
    np.savez(
        made.artifact.path / "plan-0.npz",
        rows=plan.rows[: plan.step_starts[-3]],
        step_starts=plan.step_starts[:-2],
        sequence_starts=plan.sequence_starts[plan.sequence_starts < plan.step_starts[-3]],
    )
    with pytest.raises(BudgetError, match="seed 0 trains"):
        bench.guard.check(load_build(made.artifact))


def test_missing_parts_are_named(bench):
    made = bench.make()
    with pytest.raises(ArtifactError, match="no plan for seed 9"):
        made.plan(9)
    with pytest.raises(ArtifactError, match="not a build"):
        load_build(replace(made.artifact, kind="train"))
    (made.artifact.path / "receipt.json").write_text("{")
    with pytest.raises(ArtifactError, match="unreadable receipt"):
        load_build(made.artifact)


# --- rows that cannot be trained on


def test_rows_that_cannot_be_encoded_are_dropped_with_a_reason(tmp_path, store):
    encoder = RowEncoder(write_tokenizer(tmp_path / "tok", FORGETFUL), 40)
    good = [new_row("s", [("user", f"hello {i}"), ("assistant", "ok")]) for i in range(8)]
    turns = [("user", "a"), ("assistant", "b")]
    bad = [new_row("s", [*turns, *turns]), new_row("s", [("user", "long " * 60), ("assistant", "cut off")])]
    bench = Bench(Pool.from_rows([*good, *bad]), ActionContext(0, encoder), store)
    bench.guard = bench.guard_for(600)
    made = bench.make()
    assert sorted(made.artifact.data["dropped"].values()) == [1, 1]
    assert made.artifact.data["rows"] == 8 and len(made.artifact.data["warnings"]) == 2


def test_a_pool_without_a_trainable_row_is_refused(tmp_path, store):
    encoder = RowEncoder(write_tokenizer(tmp_path / "tok", CHATML), 12)
    pool = Pool.from_rows([new_row("s", [("user", "long " * 60), ("assistant", "cut off")])])
    bench = Bench(pool, ActionContext(0, encoder), store)
    with pytest.raises(EmptyPoolError, match="sequence_tokens"):
        bench.make()
