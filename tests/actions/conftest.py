"""A small lab pool with its planted defects, an encoder, and stores; a program that knows the lab."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autosft.actions import ActionContext, apply_recipe
from autosft.artifacts import ArtifactStore
from autosft.lab.pool import make_pool
from autosft.pool import Pool, RowEncoder
from autosft.taxonomy import Taxonomy, assign
from autosft.types import ActionCall, ActionDiff, Recipe
from tests.pool.tokenizers_for_tests import CHATML, write_tokenizer

Act = Callable[..., tuple[Pool, ActionDiff]]


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> RowEncoder:
    return RowEncoder(write_tokenizer(tmp_path_factory.mktemp("tok"), CHATML), 256)


@pytest.fixture(scope="session")
def taxonomy() -> Taxonomy:
    return Taxonomy.load("default")


@pytest.fixture(scope="session")
def lab_pool(taxonomy: Taxonomy) -> Pool:
    return assign(make_pool(400, 0)[0], taxonomy)


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "store")


@pytest.fixture
def ctx(encoder: RowEncoder, taxonomy: Taxonomy, store: ArtifactStore) -> ActionContext:
    return ActionContext(seed=0, encoder=encoder, taxonomy=taxonomy, programs=("lab",), artifacts=store)


@pytest.fixture
def act(ctx: ActionContext) -> Act:
    """Return a function that applies one action: (pool, kind, **params) -> (pool, diff)."""

    def apply(pool: Pool, kind: str, **params: Any) -> tuple[Pool, ActionDiff]:
        after, diffs = apply_recipe(Recipe(pool.fingerprint, (ActionCall(kind, params),), 1), pool, ctx)
        return after, diffs[0]

    return apply


@pytest.fixture
def loss_artifact(store: ArtifactStore, lab_pool: Pool) -> str:
    """Write a training artifact in which row i of the pool has loss i; return its fingerprint."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with store.create("train", "f" * 24) as step:
        losses = [float(i) if i % 10 else None for i in range(len(lab_pool))]
        pq.write_table(pa.table({"id": lab_pool.ids, "last_loss": losses}), step.path / "row_loss.parquet")
    return "f" * 24
