"""Read-only views of a campaign, running or finished, as plain data: what the reading commands print.

None of them writes or locks anything. A figure that is not measured yet is None, never 0.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from autosft.artifacts import ArtifactStore
from autosft.errors import CampaignError
from autosft.memory import Entry, read_journal
from autosft.memory.lock import LOCK
from autosft.meta.campaign import read_facts
from autosft.meta.history import History, RoundFacts
from autosft.spend import read_ledger, spend_by_scope

# A leaf that this many measured rounds aimed at, each with rows for it, and none moved.
TAUGHT_IN_VAIN = 3
# Entries that an operator adds between runs; they re-open nothing.
BY_OPERATOR = ("round.invalidated", "parent.chosen")


def _open(out: Path) -> tuple[list[Entry], History]:
    entries = read_journal(out)
    return entries, History(entries, ArtifactStore(out / "artifacts"))


def status(out: Path) -> dict[str, Any]:
    """Return where a campaign stands: rounds, incumbent, claimed best, what is frozen, what was spent.

    Raises:
        CampaignError: There is no campaign in the folder.
        CorruptRecordError: Its journal is damaged.
    """
    facts = read_facts(out)
    entries, history = _open(out)
    stopped = [e for e in entries if e.kind == "campaign.stopped"]
    best = history.incumbent
    first = history.rounds[0] if history.rounds else None
    spent: dict[str, float] = {}
    open_: dict[str, float] = {}
    for line in read_ledger(out):
        if line["event"] == "reserved":
            open_[line["key"]] = line["amount"]
            spent[line["kind"]] = spent.get(line["kind"], 0.0) + line["amount"]
        else:
            spent[line["kind"]] += line["amount"] - open_.pop(line["key"], 0.0)
    acts = [e for e in entries if e.kind not in BY_OPERATOR]
    finished = bool(stopped) and acts[-1].kind == "campaign.stopped"
    return {
        "campaign": facts.name,
        "folder": str(out),
        "state": "stopped" if finished else ("running" if _locked(out) else "interrupted"),
        "stop_reason": stopped[-1].data["stop"] if finished else None,
        "rounds_recorded": len(history.rounds),
        "incumbent": best.round if best else None,
        "incumbent_score": best.score if best else None,
        "round0_score": first.score if first else None,
        "claimed_best": history.claimed_best,
        "pool_rows": facts.pool_rows,
        "budget_tokens": facts.budget_tokens,
        "optimizer_steps": facts.optimizer_steps,
        "base_fingerprint": facts.base_fingerprint,
        "settings_fingerprint": facts.settings_fingerprint,
        "suites": list(facts.suites),
        "device_hours": round(spent.get("device_s", 0.0) / 3600, 4),
        "usd": spent.get("usd", 0.0),
        "llm_tokens": spent.get("llm_tokens", 0.0),
        **_by_role(out),
        "elapsed_s": round((entries[-1].time if finished else time.time()) - entries[0].time, 1)
        if entries
        else None,
    }


def _by_role(out: Path) -> dict[str, dict[str, float]]:
    """Return `usd_by_role`, dearest first, where language models were asked."""
    spent = {
        scope.removeprefix("role:"): round(kinds.get("usd", 0.0), 4)
        for scope, kinds in spend_by_scope(out).items()
        if scope.startswith("role:")
    }
    return {"usd_by_role": dict(sorted(spent.items(), key=lambda item: -item[1]))} if spent else {}


def rounds(out: Path) -> list[dict[str, Any]]:
    """Return the recorded rounds, oldest first."""
    facts = read_facts(out)
    _, history = _open(out)
    best = history.incumbent
    return [
        {
            "round": r.round,
            "status": r.status,
            "parent": r.parent,
            "score": r.score,
            **_interval(r),
            "n_seeds": len(r.receipts) if r.measured else 0,
            "first_seeds_score": r.data["score"],
            "fresh_seeds_score": (r.claim or {}).get("fresh_score"),
            "verdict": _verdict(r),
            "incumbent": best is not None and best.round == r.round,
            "claimed_best": history.claimed_best == r.round,
            "invalidated": history.invalidated.get(r.round),
            "set_new_best": r.data["set_new_best"],
            "bundled": r.data["bundled"],
            "families": r.data["families"],
            "kinds": r.data["kinds"],
            "train_tokens": r.data["train_tokens"],
            "loss_tokens": r.data["loss_tokens"],
            "optimizer_steps": r.data["optimizer_steps"],
            "passes": r.data["passes"],
            "base_fingerprint": facts.base_fingerprint,
            "hypothesis_id": r.data["hypothesis_id"],
            "build_fingerprint": r.build,
            "recipe_fingerprint": r.recipe.fingerprint,
            # Records hold paths relative to the campaign, so that it can be moved; readers get usable ones.
            "checkpoint": next((str(out.absolute() / s.checkpoint) for s in r.seeds if s.checkpoint), None),
            "checkpoints": {
                str(s.seed): str(out.absolute() / s.checkpoint) for s in r.receipts if s.checkpoint
            },
        }
        for r in history.rounds
    ]


def _interval(r: RoundFacts) -> dict[str, Any]:
    claim: Mapping[str, Any] = r.claim or {}
    if claim.get("score_all") is not None:
        return {"ci_low": claim["ci_low_all"], "ci_high": claim["ci_high_all"]}
    return {"ci_low": r.data["ci_low"], "ci_high": r.data["ci_high"]}


def _verdict(r: RoundFacts) -> str:
    """Return the claim's verdict where the round was re-measured, else the comparison with its parent."""
    if r.claim is not None and r.claim["attempted"]:
        return str(r.claim["verdict"])
    return str(r.data["verdict"])


def taxonomy(out: Path, round: int | None = None) -> list[dict[str, Any]]:
    """Return a round's leaves (the incumbent's if `round` is None) with score, supply and history.

    `cannot_teach_yet` marks a leaf that at least `TAUGHT_IN_VAIN` measured rounds targeted with rows in their
    pools, none of which changed it distinguishably.

    Raises:
        CampaignError: The round is not recorded or has no scores.
    """
    read_facts(out)
    _, history = _open(out)
    if round is None:
        chosen = history.incumbent
        if chosen is None:
            return []
    else:
        measured = {r.round: r for r in history.rounds if r.measured}
        if round not in measured:
            known = ", ".join(map(str, measured)) or "none"
            raise CampaignError(
                f"round {round} has no scores", where=str(out), hint=f"rounds with scores: {known}"
            )
        chosen = measured[round]
    best, targeted = history.incumbent, targeted_rounds(history)
    vain = taught_in_vain(history)
    previous = next((r for r in reversed(history.rounds) if r.round < chosen.round and r.measured), None)
    leaves = []
    for leaf, values in chosen.data["leaves"].items():
        best_score = best.data["leaf_scores"].get(leaf) if best else None
        before = previous.data["leaf_scores"].get(leaf) if previous else None
        leaves.append(
            {
                "leaf": leaf,
                **values,
                "round": chosen.round,
                "delta_best": None if best_score is None else values["score"] - best_score,
                "delta_previous": None if before is None else values["score"] - before,
                "targeted_rounds": targeted.get(leaf, []),
                "cannot_teach_yet": leaf in vain,
            }
        )
    return leaves


def taught_in_vain(history: History) -> set[str]:
    """Return the leaves that supply cannot teach so far: targeted, supplied, never moved."""
    by_round = {r.round: r for r in history.rounds if r.measured and r.round not in history.invalidated}
    found = set()
    for leaf, rounds in targeted_rounds(history).items():
        tried = [by_round[n] for n in rounds if n in by_round]
        supplied = [r for r in tried if r.data["leaves"].get(leaf, {}).get("supply_rows")]
        moved = any(r.data["leaf_verdicts"].get(leaf) in ("better", "worse") for r in tried)
        if len(supplied) >= TAUGHT_IN_VAIN and not moved:
            found.add(leaf)
    return found


def leaf_history(out: Path, leaf: str) -> list[dict[str, Any]]:
    """Return a leaf's score, supply and verdict in every measured round, with the actions of the round.

    `batch` names the actions of a round that moved the leaf distinguishably against its parent: co-occurrence
    where a round holds several.

    Raises:
        CampaignError: No round has scored such a leaf.
    """
    read_facts(out)
    _, history = _open(out)
    measured = [r for r in history.rounds if r.measured and leaf in r.data["leaves"]]
    if not measured:
        known = sorted({name for r in history.rounds if r.measured for name in r.data["leaves"]})
        hint = f"known: {', '.join(known)}" if known else "no round has scores yet"
        raise CampaignError(f"no leaf named {leaf!r}", where=str(out), hint=hint)
    scores = {r.round: r.data["leaves"][leaf]["score"] for r in measured}
    targeted = targeted_rounds(history).get(leaf, [])
    return [
        {
            "round": r.round,
            "parent": r.parent,
            "leaf": leaf,
            **r.data["leaves"][leaf],
            "parent_score": None if r.parent is None else scores.get(r.parent),
            "verdict": (verdict := r.data["leaf_verdicts"].get(leaf)),
            "targeted": r.round in targeted,
            "batch": list(r.data["kinds"]) if verdict in ("better", "worse") else [],
            "invalidated": history.invalidated.get(r.round),
        }
        for r in measured
    ]


def targeted_rounds(history: History) -> dict[str, list[int]]:
    """Return leaf -> rounds whose hypothesis predicted a rise of it by at least one point."""
    found: dict[str, list[int]] = {}
    for r in history.rounds:
        for leaf, delta in r.data["predicted"].items():
            if delta >= 0.01:
                found.setdefault(leaf, []).append(r.round)
    return found


def actions(out: Path) -> list[dict[str, Any]]:
    """Return what each action of each round did, counted from its diff.

    `set_new_best` says that the action's round set a new best: co-occurrence, not attribution, where a
    round holds several actions.
    """
    read_facts(out)
    _, history = _open(out)
    return [
        {
            "round": r.round,
            "family": diff["family"],
            "kind": diff["kind"],
            "rows_added": diff["rows_added"],
            "rows_removed": diff["rows_removed"],
            "rows_changed": diff["rows_changed"],
            "rows_reweighted": diff["rows_reweighted"],
            "rows_moved": diff["rows_moved"],
            "tokens_delta": diff["tokens_delta"],
            "reasons": diff["reasons"],
            "set_new_best": r.data["set_new_best"],
            "bundled": r.data["bundled"],
            "actions_in_round": len(r.data["diffs"]),
        }
        for r in history.rounds
        for diff in r.data["diffs"]
    ]


def histogram(campaigns: Sequence[Path]) -> list[dict[str, Any]]:
    """Return the action histogram of several campaigns side by side: a row a round, a mapping a campaign.

    `families` maps each campaign's place in the list, as text, to family -> number of actions; a round that a
    campaign does not have is None there.
    """
    found = [{r["round"]: r["families"] for r in rounds(out)} for out in campaigns]
    last = max((number for known in found for number in known), default=0)
    return [
        {"round": number, "families": {str(i): known.get(number) for i, known in enumerate(found)}}
        for number in range(1, last + 1)
    ]


def _locked(out: Path) -> bool:
    """Say whether a live process works on the campaign; taking its lock, even for a moment, could turn it
    away."""
    try:
        os.kill(int((out / LOCK).read_text()), 0)
    except (OSError, ValueError):
        return False
    return True
