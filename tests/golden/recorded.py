"""What is recorded: a tiny recipe from rows to losses, on the shipped base; `regenerate.py` writes it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from autosft.actions import ActionContext, BenchmarkIndex, Build, BuildGuard, build, load_build
from autosft.artifacts import Artifact, ArtifactStore
from autosft.evals import load_suite
from autosft.executor.base import base_fingerprint, check_base
from autosft.executor.train import TrainJob, load_trainer
from autosft.identity import fingerprint
from autosft.lab.base import base_dir
from autosft.lab.pool import make_pool
from autosft.pool import RowEncoder
from autosft.taxonomy import Taxonomy, assign
from autosft.types import ActionCall, Message, Recipe, Row, TrainSettings

EXPECTED = Path(__file__).parent / "expected.json"
ROWS, LAB_SEED, TRAINING_SEED, BUDGET = 200, 3, 0, 5120
LISTED = 25
TRAIN = TrainSettings(dtype="float32", batch_tokens=512, sequence_tokens=256, log_every_steps=1)
ACTIONS = (
    ActionCall("repair/verifier_edit", {}),
    ActionCall("prune/exact_duplicates", {}),
    ActionCall("synthesize/template", {"program": "lab", "leaf": "json", "rows": 8}),
    ActionCall("order/verified_last", {}),
)
# Shapes in which masks are known to go silently wrong.
SHAPES: dict[str, tuple[tuple[str, str], ...]] = {
    "one turn": (("user", "Name the cat."), ("assistant", "Tom.")),
    "system turn": (("system", "Be brief."), ("user", "Name the cat."), ("assistant", "Tom.")),
    "several turns": (("user", "Hi."), ("assistant", "Hello."), ("user", "Bye."), ("assistant", "Farewell.")),
    "consecutive assistant turns": (("user", "Count."), ("assistant", "One."), ("assistant", "Two.")),
    "tool turn": (("user", "Add."), ("assistant", "Calling."), ("tool", "4"), ("assistant", "It is 4.")),
    "empty reply": (("user", "Say nothing."), ("assistant", "")),
}


def record(folder: Path) -> dict[str, Any]:
    """Return everything that is compared; artifacts go below `folder`."""
    base = base_dir()
    encoder = RowEncoder(base, TRAIN.sequence_tokens)
    built, recipe = _build(folder, encoder)
    data, receipt = built.artifact.data, built.receipt
    lengths = built.lengths.tolist()
    pairs = list(zip(built.pool.ids, lengths, strict=True))
    return {
        "base": base_fingerprint(base),
        "pool": recipe.pool,
        "recipe": recipe.fingerprint,
        "build": built.artifact.fingerprint,
        "files": {n: sha for n, sha in built.artifact.files.items() if n in ("tokens.npy", "mask.npy")},
        "plan": data["plans"][str(TRAINING_SEED)],
        "diffs": [
            {
                k: d[k]
                for k in ("kind", "family", "rows_added", "rows_removed", "rows_changed", "tokens_delta")
            }
            for d in data["diffs"]
        ],
        "contaminated": receipt["contaminated"],
        "rows": len(pairs),
        "all_rows": fingerprint(pairs),
        "first_rows": [list(pair) for pair in pairs[:LISTED]],
        "masks": _masks(encoder),
        "losses": losses(folder, built.artifact),
    }


def _build(folder: Path, encoder: RowEncoder) -> tuple[Build, Recipe]:
    taxonomy = Taxonomy.load("lab")
    pool = assign(make_pool(ROWS, LAB_SEED)[0], taxonomy)
    suite = load_suite("lab", seed=LAB_SEED, prompts_per_leaf=2)
    benchmarks = (BenchmarkIndex.from_items(suite.name, suite.reference_texts()),)
    recipe = Recipe(pool.fingerprint, ACTIONS, BUDGET, "file", 0)
    guard = BuildGuard(
        budget_tokens=BUDGET,
        optimizer_steps=math.ceil(BUDGET / TRAIN.batch_tokens),
        unique_tokens=int(encoder.counts(pool)[0].sum()),
        encoder=encoder.fingerprint,
        order="file",
        benchmarks=tuple(index.fingerprint for index in benchmarks),
    )
    done = build(
        recipe,
        pool,
        ActionContext(0, encoder, taxonomy, ("lab",)),
        benchmarks=benchmarks,
        store=ArtifactStore(folder / "artifacts"),
        train=TRAIN,
        seeds=(TRAINING_SEED,),
        guard=guard,
    )
    return load_build(done), recipe


def _masks(encoder: RowEncoder) -> dict[str, str]:
    """Return each shape as the model sees it, what is learned from between ⟦ and ⟧."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(base_dir() / "tokenizer.json"))
    shown = {}
    for name, turns in SHAPES.items():
        row = Row(name, "golden", tuple(Message(role, text) for role, text in turns))
        encoded = encoder.encode(row)
        text, learning = "", False
        for token, mask in zip([*encoded.ids, None], [*encoded.loss_mask, 0], strict=True):
            if bool(mask) != learning:
                text, learning = text + ("⟦" if mask else "⟧"), bool(mask)
            if token is not None:
                text += tokenizer.decode([int(token)], skip_special_tokens=False)
        shown[name] = text
    return shown


def losses(folder: Path, built: Artifact) -> list[float]:
    """Return the loss of each of the ten steps."""
    found: list[float] = []
    place = folder / "run"
    place.mkdir(parents=True)
    base = base_dir()
    job = TrainJob(check_base(base), base_fingerprint(base), built, TRAINING_SEED, TRAIN, 0, place)
    load_trainer("torch").train(job, lambda line: found.append(float(line["loss"])))
    return [round(loss, 5) for loss in found]
