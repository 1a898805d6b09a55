"""A small lab pool with its planted defects, an encoder, and stores; a program that knows the lab."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autosft.actions import ActionContext, BenchmarkIndex, apply_recipe
from autosft.artifacts import ArtifactStore
from autosft.lab.pool import make_pool
from autosft.pool import Pool, RowEncoder, base_id, new_row
from autosft.taxonomy import Taxonomy, assign
from autosft.types import ActionCall, ActionDiff, Message, Recipe
from tests.pool.tokenizers_for_tests import CHATML, write_tokenizer

Act = Callable[..., tuple[Pool, ActionDiff]]
SAMPLES = "5" * 24
MADE_ANSWERS, MADE_ROWS = "6" * 24, "7" * 24
LEAKED = "Name the river that runs past the old mill and say in one sentence what the millers once did there."
FRENCH = "Le renard vit dans la grange et il aime creuser des trous dans le jardin pendant la nuit."


_COLUMNS = ("row", "sample", "text", "truncated")


def _talk(prompt: str, response: str):
    return new_row("flawed", [("user", prompt), ("assistant", response)])


FLAWED = (
    _talk("Where is the cafÃ©?", "Itâ€™s near the old bridge."),
    _talk("Say it with a bell.", "Ding\x07 dong, said the bell."),
    _talk("Write the code.", "Here it is:\n```python\nprint(1)"),
    _talk("Tell me of the fox.", "The fox is red. It lives in the barn and it likes"),
    new_row("flawed", [Message("assistant", "Yes, it is."), Message("user", "Is the fox red?")]),
    _talk("What are 12 times 3?", "12 * 3 = 35, so the answer is 35."),
    _talk("Parlez-moi du renard.", FRENCH),
    _talk(LEAKED, "The river is the Sall, and the millers ground rye there."),
)


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> RowEncoder:
    return RowEncoder(write_tokenizer(tmp_path_factory.mktemp("tok"), CHATML), 256)


@pytest.fixture(scope="session")
def taxonomy() -> Taxonomy:
    return Taxonomy.load("default")


@pytest.fixture(scope="session")
def lab_pool(taxonomy: Taxonomy) -> Pool:
    return assign(make_pool(400, 0)[0], taxonomy)


@pytest.fixture(scope="session")
def flawed_pool(lab_pool: Pool) -> Pool:
    """Return the lab pool and a few rows with each of the flaws that the lab has not planted."""
    return lab_pool.append(FLAWED)


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "store")


@pytest.fixture
def ctx(encoder: RowEncoder, taxonomy: Taxonomy, store: ArtifactStore) -> ActionContext:
    return context(encoder, taxonomy, store)


@pytest.fixture
def samples(store: ArtifactStore, lab_pool: Pool) -> str:
    """Write answers to some rows: right, right but longer, broken off, and wrong ones."""
    return write_samples(store, lab_pool)


@pytest.fixture
def act(ctx: ActionContext) -> Act:
    """Return a function that applies one action: (pool, kind, **params) -> (pool, diff)."""

    def apply(pool: Pool, kind: str, **params: Any) -> tuple[Pool, ActionDiff]:
        after, diffs = apply_recipe(Recipe(pool.fingerprint, (ActionCall(kind, params),), 1), pool, ctx)
        return after, diffs[0]

    return apply


def context(encoder: RowEncoder, taxonomy: Taxonomy, store: ArtifactStore) -> ActionContext:
    """Return a context with everything an action may ask for."""
    dev = BenchmarkIndex.from_items("dev", [LEAKED])
    return ActionContext(0, encoder, taxonomy, ("lab",), store, benchmarks=(dev,))


def write_samples(store: ArtifactStore, pool: Pool, key: str = SAMPLES) -> str:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from autosft.lab.program import LabProgram

    lab, answers = LabProgram(), []
    for row in pool.rows()[::3]:
        right = lab.correct(row)
        if right is not None:
            texts = [f"{right} And some more besides.", right, "I do not know.", right[: len(right) // 2]]
            answers += [(base_id(row.id), k, text, k == 3) for k, text in enumerate(texts)]
    with store.create("samples", key) as step:
        columns = {name: [answer[k] for answer in answers] for k, name in enumerate(_COLUMNS)}
        pq.write_table(pa.table(columns), step.path / "samples.parquet")
    write_made(store, pool)
    return key


def write_made(store: ArtifactStore, pool: Pool) -> None:
    """Write what a model made: right answers to the rows, and new rows for a leaf."""
    import json

    from autosft.lab.program import LabProgram
    from autosft.pool.rows import as_data

    lab = LabProgram()
    rows = [(row.id, row, lab.correct(row)) for row in pool.rows()]
    answers = [
        {**as_data(row), "parent": i, "messages": [{"role": "assistant", "content": t}]}
        for i, row, t in rows
        if t
    ]
    new = [{**as_data(row), "parent": None} for row in lab.write("postscript", 9, 5)]
    for key, lines in ((MADE_ANSWERS, answers), (MADE_ROWS, new)):
        with store.create("made", key) as step:
            (step.path / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture
def loss_artifact(store: ArtifactStore, lab_pool: Pool) -> str:
    """Write a training artifact in which row i of the pool has loss i; return its fingerprint."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with store.create("train", "f" * 24) as step:
        losses = [float(i) if i % 10 else None for i in range(len(lab_pool))]
        pq.write_table(pa.table({"id": lab_pool.ids, "last_loss": losses}), step.path / "row_loss.parquet")
    return "f" * 24
