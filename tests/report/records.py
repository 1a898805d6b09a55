"""Campaign folders written by hand: shapes that a tiny real campaign does not reach.

Scores are drawn per item, so that every interval and comparison is computed and none is typed in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from autosft.artifacts import ArtifactStore
from autosft.evals import compare, compare_leaves, estimate, estimate_leaves, seed_noise_floor, write_items
from autosft.memory import Hypotheses, Hypothesis, Journal
from autosft.meta.campaign import Facts
from autosft.meta.record import verdict_text
from autosft.meta.scores import leaf_means, load_table
from autosft.pool import Pool, write_pool
from autosft.types import ActionCall, EvalItem, Message, Recipe, Requirement, Row, SeedReceipt

LEAVES = ("lowercase", "no_comma", "json", "title")
SEEDS = (0, 1, 2)
ITEMS_PER_LEAF = 20
HOSTILE = "<script>alert('x')</script><img src=x onerror=alert(1)>\x1b[31m&amp;\u202egnp\u202c"


@dataclass(frozen=True)
class Made:
    """One round to write.

    Attributes:
        level: Chance that an item passes; None abandons the round.
        parent: Parent round; None in round 0.
        actions: (kind, family it is counted as).
        predicted: Predicted change of the score.
        claim: Text of the hypothesis.
        fresh: Chance under fresh seeds; None leaves the claim untested.
        granted: Whether the claim is granted.
        rows: Rows of its training set; the pool's own if empty.
        open: Leave the round unfinished: hypothesis submitted, nothing recorded.
    """

    level: float | None
    parent: int | None = 0
    actions: tuple[tuple[str, str], ...] = (("prune/verifier", "prune"),)
    predicted: float = 0.1
    claim: str = "Fewer wrong rows."
    fresh: float | None = None
    granted: bool = False
    rows: tuple[Row, ...] = ()
    open: bool = False


@dataclass
class Writer:
    """Writes a campaign folder round by round."""

    folder: Path
    name: str = "made"
    sources: Mapping[str, float] = field(default_factory=lambda: {"web": 0.6, "helpdesk": 0.4})

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        self.store = ArtifactStore(self.folder / "artifacts")
        self.journal = Journal(self.folder)
        self.rng = np.random.default_rng(7)
        self.items = [
            EvalItem(f"{leaf}-{i}", "lab", (Message("user", f"{leaf} {i}"),), (Requirement("x"),), leaf)
            for leaf in LEAVES
            for i in range(ITEMS_PER_LEAF)
        ]
        with self.store.create("items", "i" * 24) as step:
            write_items(self.items, step.path / "items.jsonl")
        self.rounds: list[dict[str, Any]] = []
        facts = Facts(
            name=self.name,
            settings={"policy.name": "rules", "campaign.alpha": 0.05, "components.base": True},
            settings_fingerprint="5" * 24,
            base="/models/base",
            base_fingerprint="b" * 24,
            pool="p" * 24,
            pool_rows=300,
            encoder="e" * 24,
            items="i" * 24,
            suites={"lab": "1" * 24},
            primary=("lab",),
            benchmarks=(),
            taxonomy="t" * 24,
            budget_tokens=120_000,
            optimizer_steps=235,
            unique_tokens=80_000,
            planned_claims=5,
        )
        (self.folder / "campaign.json").write_bytes(orjson.dumps({"schema": 1, **asdict(facts)}))
        self.journal.append("campaign.opened", self.name, {"facts": "f"})

    def add(self, made: Made) -> int:
        """Write the next round; return its number."""
        number = len(self.rounds)
        parent = None if number == 0 else made.parent
        calls = tuple(ActionCall(kind, {}) for kind, _ in made.actions) if number else ()
        earlier = self.rounds[parent]["recipe"]["actions"] if parent is not None else ()
        before = tuple(ActionCall(a["kind"], a["params"]) for a in earlier)
        recipe = Recipe("p" * 24, (*before, *calls), 120_000, "file", number)
        registry = Hypotheses(self.journal)
        registry.register(
            Hypothesis(
                round=number,
                recipe=recipe.fingerprint,
                claim=made.claim,
                predicted=dict.fromkeys(LEAVES, made.predicted) if number else {},
                predicted_score=made.predicted if number else 0.0,
                success={"metric": "score", "above_parent_by": 0.0},
                abort={"metric": "score", "below_parent_by": 0.05},
                evidence=(f"round/{parent}",),
            )
        )
        registry.submit(number, recipe.fingerprint)
        if made.open:
            return number
        data = self._data(number, parent, recipe, made)
        outcome = _outcome(data)
        facts = {
            "actual_score": data["delta_parent"],
            "actual": dict(data["leaf_deltas"]),
            **({"why": data["status"]} if data["status"] != "ok" else {}),
        }
        registry.resolve(number, outcome, facts)
        with self.store.create("round", f"{number:024d}", {"round": number}) as step:
            step.data = data
        self.rounds.append(data)
        short = {k: data[k] for k in ("status", "parent", "score", "families", "build", "verdict")}
        self.journal.append("round.recorded", str(number), {"record": f"{number:024d}", **short})
        self.journal.append("claim.decided", str(number), self._claim(number, made))
        return number

    def stop(self, why: str = "all rounds are done") -> Path:
        """Write the end; return the folder."""
        self.journal.append("campaign.stopped", f"{len(self.rounds)}: {why}", {"stop": why})
        return self.folder

    def _data(self, number: int, parent: int | None, recipe: Recipe, made: Made) -> dict[str, Any]:
        ok = made.level is not None
        diffs = [_diff(kind, family, number) for kind, family in made.actions] if number else []
        families: dict[str, int] = {}
        for diff in diffs if ok else ():
            families[diff["family"]] = families.get(diff["family"], 0) + 1
        build = self._build(number, made.rows) if ok else ""
        receipts = self._receipts(number, made.level, SEEDS) if made.level is not None else []
        unique = 80_000 - 9_000 * number if number < 8 else 30_000
        return {
            "round": number,
            "status": "ok" if ok else "refused: 12 passes, at most 10",
            "parent": parent,
            "recipe": recipe.to_json(),
            "build": build,
            "effect": f"effect-{number}",
            "hypothesis_id": self.journal.of_kind("hypothesis.registered")[-1].data["id"],
            "predicted": dict.fromkeys(LEAVES, made.predicted) if number else {},
            "predicted_score": made.predicted if number else 0.0,
            "analysts": ["data"] if number else [],
            "bundled": len(made.actions) > 1,
            "kinds": [kind for kind, _ in made.actions] if number else [],
            "diffs": diffs,
            "families": families,
            "unique_tokens": unique if ok else None,
            "rows": 300 - 20 * number if ok else None,
            "token_share": dict(self.sources) if ok else {},
            "leaf_share": dict.fromkeys(LEAVES, 0.25) if ok else {},
            "contaminated": {"lab": number, "held_out": 0},
            "train_tokens": 120_000 if ok else None,
            "loss_tokens": 60_000 if ok else None,
            "optimizer_steps": 235 if ok else None,
            "passes": 120_000 / unique if ok else None,
            "seeds": [asdict(r) for r in receipts],
            **self._measured(receipts, parent),
        }

    def _measured(self, receipts: Sequence[SeedReceipt], parent: int | None) -> dict[str, Any]:
        empty: dict[str, Any] = {
            "score": None,
            "ci_low": None,
            "ci_high": None,
            "leaf_scores": {},
            "leaves": {},
            "leaf_deltas": {},
            "delta_parent": None,
            "comparison": None,
            "verdict": "abandoned: refused: 12 passes, at most 10",
            "guards_broken": [],
            "set_new_best": False,
        }
        if not receipts:
            return empty
        table = self.table(receipts)
        known = [self.table([SeedReceipt(**s) for s in r["seeds"]]) for r in self.rounds if r["seeds"]]
        noise = seed_noise_floor([*known, table])
        measured, means = estimate(table, noise), leaf_means(table)
        leaves = {
            leaf: {
                "path": f"format/{leaf}",
                "score": e.score,
                "ci_low": e.ci_low,
                "ci_high": e.ci_high,
                "n": e.n_items,
                "supply_rows": 10,
                "supply_tokens": 100,
            }
            for leaf, e in estimate_leaves(table, noise).items()
        }
        data = {
            **empty,
            "score": measured.score,
            "ci_low": measured.ci_low,
            "ci_high": measured.ci_high,
            "seed_scores": [float(s) for s in table.seed_scores_S],
            "leaf_scores": means,
            "leaves": leaves,
            "verdict": "reference",
            "set_new_best": measured.score > max((r["score"] or 0.0 for r in self.rounds), default=0.0),
        }
        if parent is None or not self.rounds[parent]["seeds"]:
            return data
        before = self.table([SeedReceipt(**s) for s in self.rounds[parent]["seeds"]])
        compared = compare(before, table, noise)
        old = leaf_means(before)
        return {
            **data,
            "leaf_deltas": {leaf: means[leaf] - old[leaf] for leaf in means},
            "leaf_verdicts": {k: c.verdict for k, c in compare_leaves(before, table, noise).items()},
            "delta_parent": compared.diff,
            "comparison": {"against": parent, **asdict(compared)},
            "verdict": verdict_text(compared, f"round {parent}"),
        }

    def table(self, receipts: Sequence[SeedReceipt]) -> Any:
        """Return the score table of some receipts."""
        return load_table(self.store, receipts, self.items, ["lab"])

    def _receipts(self, number: int, level: float, seeds: Sequence[int]) -> list[SeedReceipt]:
        receipts = []
        for seed in seeds:
            key = f"{number:04d}-{seed}"
            chance = float(np.clip(level + self.rng.normal(0, 0.02), 0, 1))
            passed = self.rng.random(len(self.items)) < chance
            columns = {"item": [i.id for i in self.items], "leaf": [i.leaf for i in self.items]}
            with self.store.create("score", key) as step:
                pq.write_table(pa.table({**columns, "strict": passed.tolist()}), step.path / "items.parquet")
            receipts.append(
                SeedReceipt(seed, "ok", "", "", 1, f"train-{key}", f"checkpoint/{key}", f"out-{key}", key)
            )
        return receipts

    def _build(self, number: int, rows: tuple[Row, ...]) -> str:
        pool = Pool.from_rows(rows or default_rows())
        with self.store.create("build", f"build-{number}") as step:
            write_pool(pool, step.path / "rows.parquet")
            (step.path / "receipt.json").write_bytes(orjson.dumps({"build": f"build-{number}"}))
            step.data = {"warnings": [], "rows": len(pool)}
        return f"build-{number}"

    def _claim(self, number: int, made: Made) -> dict[str, Any]:
        granted = made.granted or (number == 0 and made.level is not None)
        if made.fresh is None:
            verdict = "reference" if number == 0 else "not tested: not the incumbent"
            return {
                "attempted": False,
                "granted": granted,
                "verdict": verdict,
                "fresh": [],
                "score_all": None,
            }
        receipts = self._receipts(number, made.fresh, (1_000_000, 1_000_001))
        fresh = self.table(receipts)
        first = self.table([SeedReceipt(**s) for s in self.rounds[0]["seeds"]])
        known = [self.table([SeedReceipt(**s) for s in r["seeds"]]) for r in self.rounds if r["seeds"]]
        noise = seed_noise_floor([*known, fresh])
        compared, everything = compare(first, fresh, noise), estimate(fresh, noise)
        words = "claimed" if granted else "not claimed"
        return {
            "attempted": True,
            "granted": granted,
            "against": 0,
            "alpha": 0.01,
            "comparison": asdict(compared),
            "verdict": f"{words}: fresh seeds {verdict_text(compared, 'round 0')}",
            "fresh": [asdict(r) for r in receipts],
            "fresh_score": everything.score,
            "first_seeds_score": self.rounds[number]["score"],
            "score_all": everything.score,
            "ci_low_all": everything.ci_low,
            "ci_high_all": everything.ci_high,
        }


def default_rows() -> tuple[Row, ...]:
    """Return a few rows."""
    return tuple(row(f"prompt {i}", f"answer {i}") for i in range(6))


def row(prompt: str, response: str, **more: Any) -> Row:
    """Return a row of the source `web`."""
    from autosft.pool.rows import content_id

    turns = (Message("user", prompt), Message("assistant", response))
    return Row(content_id(turns), "web", turns, **more)


def _diff(kind: str, family: str, number: int) -> dict[str, Any]:
    return {
        "kind": kind,
        "family": family,
        "rows_added": 0,
        "rows_removed": 20,
        "rows_changed": 3,
        "rows_reweighted": 0,
        "rows_moved": 0,
        "tokens_delta": -900,
        "reasons": {f"fails check {number}": 20},
        "samples": [],
    }


def _outcome(data: Mapping[str, Any]) -> Any:
    if data["status"] != "ok":
        return "abandoned"
    if data["comparison"] is None:
        return "supported"
    return {"better": "supported", "worse": "refuted"}.get(data["comparison"]["verdict"], "inconclusive")


def branched(folder: Path, *, text: str = "Fewer wrong rows.", name: str = "made") -> Path:
    """Write a campaign with everything in it: claims, a refusal, a revision, an invalidated branch."""
    made = Writer(folder, name, sources={"web": 0.5, "helpdesk": 0.3, text[:60]: 0.2})
    made.add(Made(0.30, parent=None))
    made.add(Made(0.62, 0, (("repair/verifier_edit", "repair"),), 0.2, text, fresh=0.55, granted=True))
    made.add(Made(None, 1, (("prune/length", "prune"),), 0.1))
    made.add(Made(0.75, 1, (("resupervise/program", "resupervise"), ("mix/temperature", "mix")), 0.05))
    made.journal.append("round.invalidated", "3", {"reason": f"the program was wrong; {text}"})
    made.add(Made(0.40, 3, (("order/shuffle", "order"),), 0.05))
    fork = {"trigger": "abort criterion", "text": "round 4 fell", "parent": 1, "continuation": 5, "rival": 6}
    made.journal.append("revision.opened", "5", fork)
    made.add(Made(0.56, 1, (("prune/verifier", "prune"),), 0.1))
    made.add(Made(0.80, 1, (("synthesize/template", "synthesize"),), 0.15, fresh=0.82))
    closed = {"gap": 0.2, "kept": "rival", "trigger": "abort criterion"}
    made.journal.append("revision.closed", "5", closed)
    made.journal.append("parent.chosen", "7", {"parent": 5})
    made.add(Made(0.60, 5, (("order/curriculum", "order"),), 0.02))
    return made.stop()
