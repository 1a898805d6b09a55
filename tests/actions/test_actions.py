"""What single actions do to a lab pool, and how the diff counts it."""

from __future__ import annotations

import numpy as np
import pytest

from autosft.actions import check_call, diff_pools, kinds, load
from autosft.engine.near import near_duplicates
from autosft.errors import ActionError, ActionParamsError, EmptyPoolError, LineageError, UnknownActionError
from autosft.pool import Pool, made_row, new_row
from autosft.types import CONTENT_PREFIXES, ActionCall, Requirement


def lower_row(text: str, response: str, *, source: str = "s", leaf: str | None = "lowercase"):
    return new_row(
        source,
        [("user", text), ("assistant", response)],
        requirements=[Requirement("lab:lowercase")],
        leaf=leaf,
    )


@pytest.fixture
def small() -> Pool:
    rows = [lower_row(f"say {i}", "fine" if i % 2 else "Bad", source="ab"[i % 3 > 0]) for i in range(12)]
    return Pool.from_rows([*rows, new_row("chat", [("user", "hello"), ("assistant", "Hello you.")])])


# --- catalogue


def test_unknown_kinds_name_the_nearest_and_import_nothing():
    with pytest.raises(UnknownActionError, match="nearest: prune/verifier"):
        load("prune/verifyer")
    for kind in ("os/path", "prune/../apply", "../x", "mix/_weights", "prune/__init__", "context", ""):
        with pytest.raises(UnknownActionError):
            load(kind)


@pytest.mark.parametrize(
    ("kind", "params", "message"),
    [
        (
            "mix/temperature",
            {"temperature": 0},
            r"mix/temperature, temperature.*given 0.*at least 0.2, at most 100",
        ),
        ("mix/temperature", {"temperature": 2, "speed": 1}, r"speed.*takes temperature, by"),
        ("mix/temperature", {}, r"temperature.*at least 0.2"),
        ("mix/temperature", {"temperature": float("nan")}, "temperature"),
        ("prune/verifier", {"checks": "all of them"}, r"'content', 'form'"),
        ("prune/length", {"min_tokens": 9, "max_tokens": 3}, "min_tokens is above max_tokens"),
        ("mix/leaf_weights", {"factors": {"x": 11}}, r"factors.x.*given 11.*at most 10"),
        ("order/phases", {"phases": [{"names": ["a"], "start": 0.5, "end": 0.2}]}, "start is not before end"),
        ("synthesize/template", {"program": "lab", "leaf": "x", "rows": 10**9}, "at most 20000"),
    ],
)
def test_bad_params_name_the_field_and_what_is_allowed(kind, params, message):
    with pytest.raises(ActionParamsError, match=message):
        check_call(ActionCall(kind, params))


def test_checked_calls_are_complete_and_stable():
    call = check_call(ActionCall("prune/length", {"min_tokens": 3}))
    assert call.params == {
        "of": "row",
        "min_tokens": 3,
        "max_tokens": 1_000_000,
        "leaves": None,
        "sources": None,
    }
    assert check_call(call) == call


# --- mix


def shares(pool: Pool, ctx, labels) -> dict[str, float]:
    amount = pool.weights * ctx.tokens(pool)
    return {name: amount[[label == name for label in labels]].sum() / amount.sum() for name in set(labels)}


def test_source_shares_are_shares_of_tokens(small, ctx, act):
    after, diff = act(small, "mix/source_shares", shares={"chat": 0.5})
    found, before = shares(after, ctx, after.sources), shares(small, ctx, small.sources)
    assert found["chat"] == pytest.approx(0.5)
    assert found["a"] / found["b"] == pytest.approx(before["a"] / before["b"])
    assert diff.family == "mix" and diff.rows_reweighted == len(small) and diff.tokens_delta == 0


def test_source_shares_that_cannot_be_are_refused(small, act):
    for wanted in ({"nope": 0.5}, {"a": 0.6, "b": 0.6}, {"a": 1.0}, {"a": 0.5, "b": 0.2, "chat": 0.1}):
        with pytest.raises(ActionError):
            act(small, "mix/source_shares", shares=wanted)
    assert act(small, "mix/source_shares", shares={"a": 0.5, "b": 0.3, "chat": 0.2})[1].family == "mix"


def test_leaf_weights_multiply(small, act):
    after, diff = act(small, "mix/leaf_weights", factors={"lowercase": 2.0}, plain=0.5)
    assert after.weights.tolist() == [2.0] * 12 + [0.5]
    assert diff.rows_reweighted == 13
    assert act(after, "mix/leaf_weights", factors={"lowercase": 2.0})[0].weights[0] == 4
    with pytest.raises(ActionError, match="leaves: lowercase"):
        act(small, "mix/leaf_weights", factors={"uppercase": 2.0})
    with pytest.raises(ActionError, match="no row would keep"):
        act(small, "mix/leaf_weights", factors={"lowercase": 0}, plain=0)


def test_temperature_flattens_and_sharpens(small, ctx, act):
    flat = shares(act(small, "mix/temperature", temperature=100)[0], ctx, small.sources)
    assert all(share == pytest.approx(1 / 3, abs=0.01) for share in flat.values())
    sharp, before = (
        shares(p, ctx, small.sources) for p in (act(small, "mix/temperature", temperature=0.5)[0], small)
    )
    top = max(before, key=before.get)
    assert sharp[top] > before[top]
    assert act(small, "mix/temperature", temperature=1)[1].family is None


# --- prune


def test_verifier_drops_failures_by_filter(small, act):
    after, diff = act(small, "prune/verifier")
    assert len(after) == 7 and diff.rows_removed == 6 and diff.family == "prune"
    assert diff.reasons == {"fails lab:lowercase": 6} and diff.tokens_delta < 0
    assert len(diff.samples) == 5 and all(s[1] is None for s in diff.samples)
    for narrower in (
        {"checks": "content"},
        {"requirements": ["lab:fact"]},
        {"leaves": ["x"]},
        {"sources": ["chat"]},
    ):
        assert act(small, "prune/verifier", **narrower)[1].family is None
    assert act(small, "prune/verifier", sources=["a"])[1].rows_removed == sum(
        s == "a" and r.response == "Bad" for s, r in zip(small.sources, small.rows(), strict=True)
    )


def test_content_and_form_are_told_apart(lab_pool, ctx, act):
    def failing(content: bool) -> int:
        return sum(
            any(not ok and k.startswith(CONTENT_PREFIXES) == content for k, ok in ctx.passes(r).items())
            for r in lab_pool.rows()
        )

    assert act(lab_pool, "prune/verifier", checks="content")[1].rows_removed == failing(True) > 0
    assert act(lab_pool, "prune/verifier", checks="form")[1].rows_removed == failing(False) > 0


def test_exact_duplicates_keep_the_one_that_passes(act):
    pool = Pool.from_rows(
        [lower_row("say", "Yes"), lower_row("Say!", "yes"), lower_row("say", "no"), lower_row("say", "Yes")]
    )
    rows, diff = act(pool, "prune/exact_duplicates")
    assert [r.response for r in rows.rows()] == ["yes", "no"] and diff.rows_removed == 2
    prompts, _ = act(pool, "prune/exact_duplicates", match="prompt")
    assert [r.response for r in prompts.rows()] == ["yes"]


def test_length_counts_tokens_of_rows_or_replies(small, ctx, act):
    tokens, loss = ctx.encoder.counts(small)
    _, diff = act(small, "prune/length", of="response", max_tokens=int(np.median(loss)))
    assert diff.rows_removed == int((loss > np.median(loss)).sum()) > 0
    assert set(diff.reasons) == {"too long"}
    assert act(small, "prune/length", min_tokens=int(tokens.max()))[1].reasons == {
        "too short": int((tokens < tokens.max()).sum())
    }
    with pytest.raises(EmptyPoolError, match="action 1 prune/length"):
        act(small, "prune/length", min_tokens=1000)


def test_source_and_rows(small, act):
    assert act(small, "prune/source", sources=["chat", "gone"])[1].rows_removed == 1
    assert act(small, "prune/rows", ids=[small.ids[2], "gone"])[1].rows_removed == 1
    for kind, params in (("prune/source", {"sources": ["gone"]}), ("prune/rows", {"ids": ["gone"]})):
        with pytest.raises(ActionError):
            act(small, kind, **params)


def test_loss_quantile_drops_the_ends(lab_pool, act, loss_artifact):
    after, diff = act(
        lab_pool, "prune/loss_quantile", artifact=loss_artifact, highest_frac=0.1, lowest_frac=0.05
    )
    gone = [i for i, row_id in enumerate(lab_pool.ids) if row_id not in set(after.ids)]
    ranked = [i for i in range(400) if i % 10]
    assert gone == ranked[:18] + ranked[-36:]
    assert diff.reasons == {"highest losses": 36, "lowest losses": 18}
    by_leaf, _ = act(lab_pool, "prune/loss_quantile", artifact=loss_artifact, highest_frac=0.5, within="leaf")
    assert set(by_leaf.leaves) == set(lab_pool.leaves)
    with pytest.raises(ActionError, match="no per-row losses"):
        act(lab_pool, "prune/loss_quantile", artifact="0" * 24, highest_frac=0.1)
    with pytest.raises(ActionError, match="no row of the pool"):
        act(
            Pool.from_rows([lower_row("a", "b")]),
            "prune/loss_quantile",
            artifact=loss_artifact,
            highest_frac=0.1,
        )


def test_near_duplicates_are_verified(act):
    words = [f"w{i}" for i in range(60)]
    base, near, far = " ".join(words), " ".join([*words[:59], "other"]), " ".join(words[::2])
    pool = Pool.from_rows([lower_row("q", t) for t in (base, far, near)] + [lower_row("another q", base)])
    after, diff = act(pool, "prune/near_duplicates", of="response", threshold=0.9)
    assert [r.response for r in after.rows()] == [base, far] and diff.rows_removed == 2
    assert act(pool, "prune/near_duplicates", of="prompt", threshold=1.0)[1].rows_removed == 2


def test_near_duplicates_agree_with_all_pairs():
    rng = np.random.default_rng(0)
    texts = []
    for k in range(60):
        words = [f"t{k}w{i}" for i in rng.integers(0, 50, 40)]
        texts.append(" ".join(words))
        for _ in range(3):
            changed = [w if rng.random() > 0.02 else "zz" for w in words]
            texts.append(" ".join(changed))

    def shingles(text: str) -> set[tuple[str, ...]]:
        words = text.split()
        return {tuple(words[i : i + 3]) for i in range(len(words) - 2)}

    sets = [shingles(t) for t in texts]
    found = near_duplicates(texts, 0.8)
    missed = false = 0
    for i, own in enumerate(sets):
        earlier = [j for j in range(i) if found[j] < 0 and len(own & sets[j]) / len(own | sets[j]) >= 0.8]
        missed += bool(earlier) and found[i] < 0
        false += not earlier and found[i] >= 0
    assert false == 0, "every hit is verified"
    assert missed <= 2 and (found >= 0).sum() > 60


# --- order


def test_shuffle_and_curriculum(lab_pool, ctx, act, loss_artifact):
    after, diff = act(lab_pool, "order/shuffle")
    assert diff.family == "order" and diff.rows_moved == 400 and set(after.order_jitter) == {1.0}
    short_first, _ = act(lab_pool, "order/curriculum", direction="ascending")
    tokens = ctx.tokens(lab_pool)
    assert np.corrcoef(short_first.order_keys, tokens)[0, 1] > 0.9
    assert short_first.order_keys.min() >= 0 and short_first.order_keys.max() <= 1
    hard_first, _ = act(
        lab_pool, "order/curriculum", by="loss", artifact=loss_artifact, direction="descending"
    )
    ranked = np.arange(400) % 10 > 0
    assert np.corrcoef(hard_first.order_keys[ranked], np.arange(400)[ranked])[0, 1] < -0.95
    assert set(hard_first.order_jitter[~ranked]) == {1.0}
    with pytest.raises(ActionError, match="needs the training artifact"):
        act(lab_pool, "order/curriculum", by="loss")


def test_verified_last_fills_the_end_with_passing_rows(lab_pool, ctx, act):
    good = np.array([bool(r.requirements) and all(ctx.passes(r).values()) for r in lab_pool.rows()])
    amount = ctx.tokens(lab_pool)
    for wanted in (1.0, 0.2):
        after, diff = act(lab_pool, "order/verified_last", clean_frac=wanted)
        late = after.order_keys > 0.5 * (1 - min(wanted, amount[good].sum() / amount.sum())) + 1e-6
        assert good[late].all() and diff.family == "order"
        share = amount[late].sum() / amount.sum()
        assert share == pytest.approx(min(wanted, amount[good].sum() / amount.sum()), abs=0.01)
    clean = lab_pool.keep(good)
    assert act(clean, "order/verified_last")[1].family is None


def test_phases_place_groups(small, act):
    after, _ = act(small, "order/phases", by="source", phases=[
        {"names": ["a"], "start": 0.0, "end": 0.5}, {"names": ["chat"], "start": 0.5, "end": 1.0},
    ])  # fmt: skip
    keys = dict(zip(after.sources, after.order_keys.tolist(), strict=True))
    assert keys["a"] == 0.25 and keys["chat"] == 0.75 and np.isnan(keys["b"])
    with pytest.raises(ActionError, match="has: a, b, chat"):
        act(small, "order/phases", by="source", phases=[{"names": ["z"], "start": 0.0, "end": 0.5}])
    with pytest.raises(ActionParamsError, match="two phases"):
        act(small, "order/phases", phases=[{"names": ["a", "a"], "start": 0.0, "end": 0.5}])


# --- resupervise, synthesize


def test_a_program_replaces_wrong_answers(lab_pool, ctx, act):
    wrong = [r for r in lab_pool.rows() if not ctx.passes(r).get("lab:fact", True)]
    after, diff = act(lab_pool, "resupervise/program", program="lab")
    assert diff.family == "resupervise" and diff.rows_changed > len(wrong) / 2 and diff.rows_removed == 0
    made = [r for r in after.rows() if r.made_by]
    assert all(
        all(ctx.passes(r).values()) and r.verdicts == ctx.passes(r) and r.method == "replace" for r in made
    )
    assert {r.parent for r in made} <= {r.id for r in lab_pool.rows() if not all(ctx.passes(r).values())}
    dropped, more = act(lab_pool, "resupervise/program", program="lab", drop_failures=True)
    assert more.rows_removed > 0 and all(all(ctx.passes(r).values()) for r in dropped.rows())
    with pytest.raises(ActionError, match="has: lab"):
        act(lab_pool, "resupervise/program", program="os")


class Writer:
    """A program whose rows partly fail their checks, repeat one another or repeat the pool."""

    name, fingerprint = "writer", "w"

    def correct(self, row):
        return None

    def write(self, leaf, n, seed):
        rows = [
            lower_row(f"write number {i + seed}", f"number {i} is written here", leaf=leaf) for i in range(n)
        ]
        return [
            *rows[: n - 2],
            rows[0],
            lower_row("say 1", "fine", leaf=leaf),
            lower_row("x", "BAD", leaf=leaf),
        ]


def test_new_rows_pass_every_gate_and_the_yield_is_counted(small, ctx, encoder):
    from autosft.actions import ActionContext, apply_recipe
    from autosft.types import Recipe

    mine = ActionContext(seed=0, encoder=encoder, programs=(Writer(),))
    call = ActionCall("synthesize/template", {"program": "writer", "leaf": "lowercase", "rows": 10})
    after, [diff] = apply_recipe(Recipe(small.fingerprint, (call,), 1), small, mine)
    assert diff.family == "synthesize" and diff.rows_added == 8
    assert diff.reasons == {
        "new row for lowercase": 8, "written": 11, "failed its checks": 1, "near-duplicate": 2, "admitted": 8,
    }  # fmt: skip
    new = after.rows()[len(small) :]
    assert all(r.method == "new" and r.parent is None and r.verdicts == {"lab:lowercase": True} for r in new)
    assert {r.source for r in new} == {"synthetic"}


def test_lab_rows_for_an_absent_leaf(lab_pool, ctx, act):
    absent = next(leaf for leaf in ("json", "title", "postscript", "bullets") if leaf not in lab_pool.leaves)
    after, diff = act(lab_pool, "synthesize/template", program="lab", leaf=absent, rows=30)
    assert diff.rows_added >= 25 and after.leaves.count(absent) == diff.rows_added
    _, second = act(after, "synthesize/template", program="lab", leaf=absent, rows=30)
    assert second.rows_added == 0 and second.family is None, "the same rows are no new rows"
    _, third = act(after, "synthesize/template", program="lab", leaf=absent, rows=30, seed=1)
    assert third.rows_added > 15


# --- diffs


def diff(ctx, before: Pool, after: Pool):
    return diff_pools(before, after, "x/y", ctx)


def edit(row, response, method="edit"):
    return made_row(row, response=response, made_by="x/y", method=method, verdicts={"v": True})


def test_families_are_counted_from_what_happened(small, ctx):
    assert diff(ctx, small, small).family is None
    assert diff(ctx, small, small.with_weights(np.full(13, 2.0))).family == "mix"
    assert diff(ctx, small, small.with_order(np.full(13, 0.5))).family == "order"
    assert diff(ctx, small, small.take(list(range(13))[::-1])).family == "order"
    assert diff(ctx, small, small.keep([True] * 12 + [False])).family == "prune"
    assert diff(ctx, small, small.append([lower_row("new", "row")])).family == "synthesize"
    assert diff(ctx, small, small.replace([0], [edit(small.row(0), "bad")])).family == "repair"
    assert (
        diff(ctx, small, small.replace([0], [edit(small.row(0), "bad", "replace")])).family == "resupervise"
    )


def test_copies_are_mix_whatever_they_are_called(small, ctx):
    found = diff(ctx, small, small.append([small.row(0), small.row(1)]))
    assert found.family == "mix" and found.rows_added == 2


def test_the_effect_on_most_rows_names_the_family(small, ctx):
    edited = small.replace([0, 2], [edit(small.row(0), "bad"), edit(small.row(2), "bad")])
    assert diff(ctx, small, edited.keep([True] * 12 + [False])).family == "repair"
    assert diff(ctx, small, edited.keep([True] * 6 + [False] * 7)).family == "prune"


def test_counts_and_tokens(small, ctx):
    changed = small.replace([0], [edit(small.row(0), "a longer answer")]).keep([True] * 11 + [False] * 2)
    changed = changed.append([lower_row("new", "row")])
    found = diff(ctx, small, changed)
    assert (found.rows_changed, found.rows_removed, found.rows_added) == (1, 2, 1)
    assert found.tokens_delta == int(ctx.tokens(changed).sum() - ctx.tokens(small).sum())
    assert (small.ids[0], changed.ids[0], "x/y") in found.samples


def test_a_row_made_from_a_row_that_stays_is_new(small, ctx):
    found = diff(ctx, small, small.append([edit(small.row(0), "another")]))
    assert found.rows_changed == 0 and found.rows_added == 1 and found.family == "synthesize"


def test_an_action_that_loses_lineage_is_stopped(small, ctx, monkeypatch):
    from dataclasses import replace

    from autosft.actions import Action, apply_recipe
    from autosft.types import Recipe

    def careless(pool, params, ctx):
        return pool.replace([0], [replace(pool.row(0), made_by="prune/verifier", method="edit")])

    action = load("prune/verifier")
    broken = Action(action.kind, action.doc, action.params, action.example, careless)
    monkeypatch.setattr("autosft.actions.apply.load", lambda kind: broken)
    with pytest.raises(LineageError, match="lacks parent, verdicts"):
        apply_recipe(Recipe(small.fingerprint, (ActionCall("prune/verifier"),), 1), small, ctx)


def test_every_family_has_an_action():
    assert {kind.split("/")[0] for kind in kinds()} == {
        "mix",
        "prune",
        "repair",
        "resupervise",
        "synthesize",
        "order",
    }
