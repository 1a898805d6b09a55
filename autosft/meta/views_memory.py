"""Read-only views of what a campaign remembers: hypotheses against measurements, and the tree of rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from autosft.artifacts import ArtifactStore
from autosft.memory import Entry, read_journal
from autosft.meta.campaign import read_facts
from autosft.meta.history import History, RoundFacts

MAIN, CONTINUATION, RIVAL = "main", "continuation", "rival"


def open_history(out: Path) -> tuple[list[Entry], History]:
    """Return a campaign's journal entries and the history they tell, without locking anything.

    Raises:
        CampaignError: There is no campaign in the folder.
        CorruptRecordError: Its journal is damaged.
    """
    read_facts(out)
    entries = read_journal(out)
    return entries, History(entries, ArtifactStore(out / "artifacts"))


def hypotheses(out: Path) -> list[dict[str, Any]]:
    """Return every registered hypothesis, oldest first: claim, criteria, predicted against actual, outcome.

    `state` is `open` (registered), `submitted` (frozen, its runs under way) or the outcome. A leaf's `actual`
    is None until it is measured; its `verdict` says whether the change is distinguishable from none.

    Raises:
        CampaignError: There is no campaign in the folder.
    """
    entries, history = open_history(out)
    by_kind: dict[str, dict[int, Entry]] = {}
    for entry in entries:
        if entry.kind.startswith("hypothesis."):
            by_kind.setdefault(entry.kind, {})[int(entry.key)] = entry
    recorded = {facts.round: facts for facts in history.rounds}
    return [
        _hypothesis(
            number,
            entry.data,
            by_kind.get("hypothesis.resolved", {}).get(number),
            submitted=number in by_kind.get("hypothesis.submitted", {}),
            facts=recorded.get(number),
            invalidated=history.invalidated.get(number),
        )
        for number, entry in sorted(by_kind.get("hypothesis.registered", {}).items())
    ]


def _hypothesis(
    number: int,
    written: Mapping[str, Any],
    resolved: Entry | None,
    *,
    submitted: bool,
    facts: RoundFacts | None,
    invalidated: str | None,
) -> dict[str, Any]:
    outcome: Mapping[str, Any] = resolved.data if resolved else {}
    compared = (facts.data.get("comparison") if facts else None) or {}
    return {
        "id": written["id"],
        "round": number,
        "parent": facts.parent if facts else None,
        "state": outcome.get("outcome") or ("submitted" if submitted else "open"),
        "claim": written["claim"],
        "predicted_score": written["predicted_score"] if number > 0 else None,
        "actual_score": outcome.get("actual_score"),
        "ci_low": compared.get("ci_low"),
        "ci_high": compared.get("ci_high"),
        "mde": compared.get("mde"),
        "why": outcome.get("why"),
        "success": written["success"],
        "abort": written["abort"],
        "leaves": _leaves(written["predicted"], outcome.get("actual") or {}, facts),
        "analysts": list(facts.data["analysts"]) if facts else [],
        "bundled": bool(facts.data["bundled"]) if facts else False,
        "recipe_fingerprint": written["recipe"],
        "evidence": list(written["evidence"]),
        "invalidated": invalidated,
    }


def _leaves(
    predicted: Mapping[str, float], actual: Mapping[str, Any], facts: RoundFacts | None
) -> list[dict[str, Any]]:
    verdicts: Mapping[str, str] = facts.data.get("leaf_verdicts", {}) if facts else {}
    return [
        {
            "leaf": leaf,
            "predicted": delta,
            "actual": actual.get(leaf),
            "verdict": verdicts.get(leaf),
        }
        for leaf, delta in sorted(predicted.items(), key=lambda pair: (-pair[1], pair[0]))
    ]


def lineage(out: Path) -> list[dict[str, Any]]:
    """Return the tree of rounds, oldest first: parents, children, arms of revisions, invalidated ones,
    checkpoints.

    `arm` is `main`, or `continuation` or `rival` inside a revision; `kept` says which of the two arms a
    closed revision kept. `invalidated` holds the reason where a round no longer counts, be it an
    ancestor's. `parent_chosen` says that an operator chose the parent.

    Raises:
        CampaignError: There is no campaign in the folder.
    """
    entries, history = open_history(out)
    chosen = {int(e.key) for e in entries if e.kind == "parent.chosen"}
    direct = {int(e.key) for e in entries if e.kind == "round.invalidated"}
    closed = {int(e.key): e.data for e in entries if e.kind == "revision.closed"}
    arms: dict[int, dict[str, Any]] = {}
    for fork in history.forks:
        kept = closed.get(fork.continuation, {}).get("kept")
        facts = {"trigger": fork.trigger, "gap": closed.get(fork.continuation, {}).get("gap")}
        arms[fork.continuation] = {"arm": CONTINUATION, **facts, "kept": _kept(kept, CONTINUATION)}
        arms[fork.rival] = {"arm": RIVAL, **facts, "kept": _kept(kept, RIVAL)}
    best = history.incumbent
    return [
        {
            **_node(facts),
            "arm": MAIN,
            "trigger": None,
            "gap": None,
            "kept": None,
            **arms.get(facts.round, {}),
            "children": [r.round for r in history.rounds if r.parent == facts.round],
            "depth": _depth(facts, history.rounds),
            "parent_chosen": facts.round in chosen,
            "invalidated": history.invalidated.get(facts.round),
            "invalidated_by_operator": facts.round in direct,
            "incumbent": best is not None and best.round == facts.round,
            "claimed_best": history.claimed_best == facts.round,
        }
        for facts in history.rounds
    ]


def _kept(kept: str | None, arm: str) -> bool | None:
    return None if kept is None else kept == arm


def _node(facts: RoundFacts) -> dict[str, Any]:
    return {
        "round": facts.round,
        "parent": facts.parent,
        "status": facts.status,
        "score": facts.score,
        "verdict": facts.data["verdict"],
        "families": facts.data["families"],
        "kinds": facts.data["kinds"],
        "hypothesis_id": facts.data["hypothesis_id"],
        "recipe_fingerprint": facts.recipe.fingerprint,
        "build_fingerprint": facts.build,
        "checkpoints": {str(r.seed): r.checkpoint for r in facts.receipts if r.checkpoint},
    }


def _depth(facts: RoundFacts, rounds: Sequence[RoundFacts]) -> int:
    depth, parent = 0, facts.parent
    while parent is not None:
        depth, parent = depth + 1, rounds[parent].parent
    return depth
