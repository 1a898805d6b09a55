"""What every action of the catalogue must keep to, whoever added it.

A new action is picked up here by itself; `FIRES` needs one line that shows it doing something.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autosft.actions import ActionContext, apply_recipe, catalogue, check_call, check_lineage, kinds, load
from autosft.artifacts import ArtifactStore
from autosft.errors import ActionError
from autosft.pool import Pool
from autosft.types import FAMILIES, ActionCall, Recipe
from tests.actions.conftest import (  # noqa: F401
    MADE_ANSWERS,
    MADE_ROWS,
    SAMPLES,
    context,
    ctx,
    encoder,
    flawed_pool,
    lab_pool,
    loss_artifact,
    samples,
    store,
    taxonomy,
    write_samples,
)

LOSSES = "f" * 24
# Parameters with which the action changes something in the flawed pool; a dict, or a function of the pool.
FIRES: dict[str, Any] = {
    "mix/cap_repeats": {"of": "response", "most": 2.0},
    "mix/leaf_weights": lambda pool: {"factors": {next(leaf for leaf in pool.leaves if leaf): 2.0}},
    "mix/source_shares": lambda pool: {"shares": {pool.sources[0]: 0.5}},
    "mix/temperature": {"temperature": 3.0},
    "prune/contamination": {},
    "prune/correctness": {"answers": False},
    "prune/exact_duplicates": {},
    "prune/language": {"keep": ["en"], "min_letters": 60},
    "prune/length": {"of": "response", "min_tokens": 9},
    "prune/loss_quantile": {"artifact": LOSSES, "highest_frac": 0.2},
    "prune/near_duplicates": {"threshold": 0.7},
    "prune/rows": lambda pool: {"ids": pool.ids[::7]},
    "prune/source": lambda pool: {"sources": [pool.sources[0]]},
    "prune/verifier": {},
    "repair/made": {"artifact": MADE_ANSWERS},
    "repair/prompt_reword": {},
    "repair/text_defects": {},
    "repair/verifier_edit": {},
    "resupervise/checkpoint": {"artifact": SAMPLES},
    "resupervise/made": {"artifact": MADE_ANSWERS},
    "resupervise/program": {"program": "lab"},
    "synthesize/made": {"artifact": MADE_ROWS},
    "synthesize/template": {"program": "lab", "leaf": "postscript", "rows": 9, "seed": 5},
    "order/blocks": {},
    "order/curriculum": {},
    "order/fixed": {"reverse": True},
    "order/interleave": {"by": "source"},
    "order/phases": {"phases": [{"names": ["(none)"], "start": 0.0, "end": 0.5}]},
    "order/shuffle": {},
    "order/verified_last": {},
}


def firing(kind: str, pool: Pool) -> dict[str, Any]:
    params = FIRES[kind]
    return params(pool) if callable(params) else params


def run(kind: str, params: dict[str, Any], pool: Pool, context: ActionContext, seed: int = 0):
    recipe = Recipe(pool.fingerprint, (ActionCall(kind, params),), 1, seed=seed)
    after, diffs = apply_recipe(recipe, pool, context)
    return after, diffs[0]


def test_every_action_is_shown_to_fire_here():
    assert set(FIRES) == set(kinds())


@pytest.mark.parametrize("kind", kinds())
def test_an_entry_is_complete(kind):
    entry = load(kind).describe()
    assert entry["family"] in FAMILIES and entry["kind"].startswith(entry["family"] + "/")
    first = entry["doc"].splitlines()[0]
    assert 20 < len(first) <= 110 and first.endswith(".")
    assert entry["schema"]["additionalProperties"] is False
    assert json.loads(json.dumps(entry)) == entry
    checked = check_call(ActionCall(kind, entry["example"]))
    assert check_call(ActionCall(kind, json.loads(json.dumps(checked.params)))) == checked


@pytest.mark.parametrize("kind", kinds())
def test_it_fires_in_its_own_family(kind, flawed_pool, ctx, loss_artifact, samples):  # noqa: F811
    after, diff = run(kind, firing(kind, flawed_pool), flawed_pool, ctx)
    assert diff.family == kind.split("/")[0]
    assert after.fingerprint != flawed_pool.fingerprint
    touched = diff.rows_added + diff.rows_removed + diff.rows_changed + diff.rows_reweighted + diff.rows_moved
    assert touched > 0
    if diff.rows_removed or diff.rows_changed or diff.rows_added:
        assert diff.reasons and kind not in diff.reasons, "each touched row has a reason of its own"
        assert diff.samples


def bounded(schema: dict[str, Any], root: dict[str, Any], pool: Pool) -> st.SearchStrategy[Any]:
    """Values that a JSON schema allows, names drawn from the pool where names are wanted."""
    if "$ref" in schema:
        return bounded(root["$defs"][schema["$ref"].rsplit("/", 1)[-1]], root, pool)
    if "anyOf" in schema:
        return st.one_of(*(bounded(part, root, pool) for part in schema["anyOf"]))
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kind = schema.get("type")
    if "pattern" in schema:
        return st.from_regex(schema["pattern"], fullmatch=True)
    names = st.sampled_from(
        [*{leaf for leaf in pool.leaves if leaf}, *set(pool.sources), *pool.ids[:3], LOSSES, SAMPLES, "lab"]
    )
    if kind == "object" and "properties" in schema:
        required = {
            k: bounded(v, root, pool)
            for k, v in schema["properties"].items()
            if k in schema.get("required", ())
        }
        optional = {k: bounded(v, root, pool) for k, v in schema["properties"].items() if k not in required}
        return st.fixed_dictionaries(required, optional=optional)
    if kind == "object":
        values = bounded(schema["additionalProperties"], root, pool)
        return st.dictionaries(names, values, min_size=schema.get("minProperties", 0), max_size=3)
    if kind == "array":
        return st.lists(bounded(schema["items"], root, pool), min_size=schema.get("minItems", 0), max_size=3)
    if kind == "integer":
        return st.integers(schema.get("minimum", 0), min(schema.get("maximum", 60), 60))
    if kind == "number":
        low, high = (
            schema.get("minimum", schema.get("exclusiveMinimum", 0)),
            schema.get("maximum", schema.get("exclusiveMaximum", 9)),
        )
        return st.floats(
            low, high, exclude_min="exclusiveMinimum" in schema, exclude_max="exclusiveMaximum" in schema
        )
    return {"null": st.none(), "boolean": st.booleans(), "string": names}[kind]


@pytest.fixture(scope="module")
def shared_store(tmp_path_factory, lab_pool):  # noqa: F811
    store = ArtifactStore(tmp_path_factory.mktemp("shared"))  # noqa: F811
    write_samples(store, lab_pool)
    return store


@pytest.mark.parametrize("kind", kinds())
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_allowed_parameters_keep_the_contract(kind, data, flawed_pool, shared_store, encoder, taxonomy):  # noqa: F811
    schema = load(kind).params.model_json_schema()
    params = data.draw(bounded(schema, schema, flawed_pool), label="params")
    some = data.draw(st.integers(5, 80), label="rows")
    flawed = np.array([source == "flawed" for source in flawed_pool.sources])
    start = flawed_pool.keep(flawed | (np.arange(len(flawed_pool)) % max(1, len(flawed_pool) // some) == 0))
    before = start.fingerprint, start.rows(), start.weights.copy()
    contexts = [context(encoder, taxonomy, shared_store) for _ in range(2)]
    results: list[Any] = []
    for used in contexts:
        try:
            results.append(run(kind, params, start, used, seed=3))
        except ActionError as error:
            assert kind in str(error), "the message says which action"
            results.append(str(error))
    assert (start.fingerprint, start.rows()) == before[:2] and (start.weights == before[2]).all(), (
        "input unchanged"
    )
    if isinstance(results[0], str):
        assert results[0] == results[1]
        return
    (after, diff), (again, diff_again) = results
    assert after.fingerprint == again.fingerprint and diff == diff_again, "deterministic"
    assert Pool(after.table).rows() == after.rows()
    check_lineage(after)
    old = set(start.ids)
    for row in after.rows():
        if row.id not in old and row.made_by:
            assert row.made_by == kind and (row.parent in old or row.method == "new")
            own = {name for name in row.verdicts if name.startswith("check:")}
            decided = {name: passed for name, passed in row.verdicts.items() if name not in own}
            assert decided == contexts[0].passes(row) and all(row.verdicts.values())
    assert len(after) == len(start) + diff.rows_added - diff.rows_removed
    assert (diff.family is None) == (after.fingerprint == start.fingerprint)


@pytest.mark.parametrize(
    "kind", [k for k in kinds() if k in ("repair/prompt_reword", "order/verified_last", "order/interleave")]
)
def test_the_seed_is_used_where_chance_is(kind, lab_pool, ctx):  # noqa: F811
    params = {"repair/prompt_reword": {"frac": 0.5}, "order/verified_last": {"clean_frac": 0.2}}.get(kind, {})
    prints = {run(kind, params, lab_pool, ctx, seed)[0].fingerprint for seed in (0, 0, 1)}
    assert len(prints) == 2


@pytest.mark.parametrize("kind", kinds())
def test_what_ran_before_does_not_change_an_action(kind, flawed_pool, ctx, loss_artifact, samples):  # noqa: F811
    """Trying an action on the parent's pool and replaying the whole recipe must give the same rows."""
    first = ActionCall("mix/temperature", {"temperature": 2.0, "by": "leaf"})
    call = ActionCall(kind, firing(kind, flawed_pool))
    parent, _ = apply_recipe(Recipe(flawed_pool.fingerprint, (first,), 1), flawed_pool, ctx)
    tried, _ = apply_recipe(Recipe(parent.fingerprint, (call,), 1), parent, ctx)
    fresh = replace(ctx, _verdicts={})
    whole, _ = apply_recipe(Recipe(flawed_pool.fingerprint, (first, call), 1), flawed_pool, fresh)
    assert whole.fingerprint == tried.fingerprint


def test_the_generated_page_is_current():
    from scripts.render_catalogue import PAGE, render

    page = Path(__file__).parents[2] / PAGE
    assert page.read_text(encoding="utf-8") == render(catalogue()), "run `make docs`"
