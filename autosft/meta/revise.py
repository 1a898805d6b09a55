"""The revision node: when a campaign is stuck, a concrete rival plan runs beside the continuation.

Source: strategy lock-in study (arXiv:2608.19072): advice to switch is not taken and switching is not always
better, so a rival is built by code from action families that the incumbent's recipe does not use, trained
from the same parent at the same budget as the continuation, and kept only if it measures better.

A fork takes two rounds with one parent: the `continuation` is planned as usual, the `rival` by `rival_plans`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autosft.memory import Journal
from autosft.meta.history import History, RoundFacts
from autosft.subagents.evidence import Sources
from autosft.types import FAMILIES

PLATEAU_ROUNDS = 2
COLLAPSE_ROUNDS = 3
SHRINK_FRAC = 0.5
ABORT_BELOW_PARENT = 0.05
# Families in the order in which a rival tries them: what changes rows first, what only moves budget last.
RIVAL_ORDER = ("repair", "resupervise", "synthesize", "prune", "order", "mix")


@dataclass(frozen=True, slots=True)
class Trigger:
    """Why a revision is due: its name, what was measured, and the round both branches start from."""

    name: str
    text: str
    parent: int


@dataclass(frozen=True, slots=True)
class Fork:
    """Two rounds from one parent: the continuation and its rival."""

    trigger: str
    parent: int
    continuation: int
    rival: int


def find_trigger(history: History) -> Trigger | None:
    """Return the first trigger that fires on the record and has not fired for the same parent before."""
    best = history.incumbent
    rounds = history.rounds
    if best is None or len(rounds) < 2 or history.open_fork is not None:
        return None
    candidates = [
        _abort(rounds, best),
        _shrink(rounds, best),
        _collapse(rounds, best),
        _plateau(rounds, best),
    ]
    known = {(f.trigger, f.parent) for f in history.forks}
    return next((t for t in candidates if t is not None and (t.name, t.parent) not in known), None)


def _abort(rounds: Sequence[RoundFacts], best: RoundFacts) -> Trigger | None:
    last = rounds[-1]
    delta = last.data["delta_parent"]
    if delta is None or delta >= -ABORT_BELOW_PARENT:
        return None
    text = f"round {last.round} met its abort criterion ({delta:+.3f} against its parent)"
    return Trigger("abort criterion", text, best.round)


def _plateau(rounds: Sequence[RoundFacts], best: RoundFacts) -> Trigger | None:
    since = len(rounds) - 1 - best.round
    if since < PLATEAU_ROUNDS:
        return None
    return Trigger("plateau", f"no new incumbent for {since} rounds", best.round)


def _collapse(rounds: Sequence[RoundFacts], best: RoundFacts) -> Trigger | None:
    last = [r for r in rounds[-COLLAPSE_ROUNDS:] if r.round > 0]
    families = {family for r in last for family in r.data["families"]}
    if len(last) < COLLAPSE_ROUNDS or len(families) != 1:
        return None
    return Trigger("family collapse", f"the last {len(last)} rounds only used {families.pop()}", best.round)


def _shrink(rounds: Sequence[RoundFacts], best: RoundFacts) -> Trigger | None:
    first = rounds[0].data["unique_tokens"]
    now = best.data["unique_tokens"]
    if not first or now is None or now >= SHRINK_FRAC * first:
        return None
    parent = next((r.round for r in reversed(rounds) if _large(r, first)), 0)
    return Trigger("pool shrink", f"the incumbent trains on {now:,} unique tokens of {first:,}", parent)


def _large(facts: RoundFacts, first: int) -> bool:
    tokens = facts.data["unique_tokens"]
    return facts.measured and tokens is not None and tokens >= SHRINK_FRAC * first


def open_fork(journal: Journal, history: History, last_round: int) -> Trigger | None:
    """Journal a fork if a trigger fires and both branches still fit into the campaign; return the trigger."""
    trigger, after = find_trigger(history), len(history.rounds)
    if trigger is None or after + 1 > last_round:
        return None
    journal.append(
        "revision.opened",
        str(after),
        {
            "trigger": trigger.name,
            "text": trigger.text,
            "parent": trigger.parent,
            "continuation": after,
            "rival": after + 1,
        },
    )
    return trigger


def close_fork(journal: Journal, history: History) -> str:
    """Journal the outcome once both branches are recorded; return a line for people, or ''."""
    fork = next((f for f in history.forks if f.rival == len(history.rounds) - 1), None)
    if fork is None or journal.find("revision.closed", str(fork.continuation)) is not None:
        return ""
    own, rival = history.rounds[fork.continuation], history.rounds[fork.rival]
    gap = None if own.score is None or rival.score is None else rival.score - own.score
    kept = (
        "rival"
        if rival.score is not None and (own.score is None or rival.score > own.score)
        else "continuation"
    )
    journal.append(
        "revision.closed", str(fork.continuation), {"gap": gap, "kept": kept, "trigger": fork.trigger}
    )
    return f"revision: {kept} kept, gap of the rival {'unknown' if gap is None else f'{gap:+.3f}'}"


def rival_plans(sources: Sources, parent: RoundFacts) -> list[dict[str, Any]]:
    """Return concrete rival proposals, most different first: one action of each family the parent lacks.

    The caller drops actions that change nothing on the parent's pool.
    """
    used = {call.family for call in parent.recipe.actions}
    unused = [family for family in RIVAL_ORDER if family not in used] or list(RIVAL_ORDER)
    weak = sorted(sources.leaf_scores, key=lambda leaf: (sources.leaf_scores[leaf], leaf))
    menu = _menu(sources, weak)
    plans = [(family, action) for family in unused for action in menu.get(family, ())]
    predicted = {leaf: 0.05 * (1 - sources.leaf_scores[leaf]) for leaf in weak}
    return [
        {
            "analyst": "revision",
            "claim": f"A rival plan from {family}, which the incumbent's recipe does not use.",
            "actions": [{"kind": action[0], "params": action[1]}],
            "predicted": predicted,
        }
        for family, action in plans
    ]


def _menu(sources: Sources, weak: list[str]) -> Mapping[str, list[tuple[str, dict[str, Any]]]]:
    supplied = {leaf for leaf in sources.pool.leaves if leaf}
    have = [leaf for leaf in weak if leaf in supplied][:4]
    program = next(iter(sources.programs), None)
    menu: dict[str, list[tuple[str, dict[str, Any]]]] = {
        "repair": [("repair/verifier_edit", {}), ("repair/prompt_reword", {"frac": 0.5})],
        "prune": [("prune/verifier", {}), ("prune/near_duplicates", {})],
        "order": [("order/verified_last", {}), ("order/shuffle", {}), ("order/curriculum", {"by": "length"})],
        "mix": [("mix/leaf_weights", {"factors": dict.fromkeys(have, 2.0)})] if have else [],
    }
    if program is not None:
        menu["resupervise"] = [("resupervise/program", {"program": program})]
        menu["synthesize"] = [
            ("synthesize/template", {"program": program, "leaf": leaf, "rows": 100}) for leaf in weak[:2]
        ]
    return menu


def strategy_metrics(history: History) -> dict[str, Any]:
    """Return switch rate, adoption of rivals and their mean gap, as arXiv:2608.19072 reports them.

    Returns:
        switches: rounds whose families share none with the round before; switch_rate: their share of the
        adjacent pairs (None without a pair); forks; adopted: forks whose rival was kept; mean_gap: rival less
        continuation.
    """
    sets = [set(r.data["families"]) for r in history.rounds if r.round > 0]
    pairs = list(itertools.pairwise(sets))
    switches = sum(1 for a, b in pairs if a and b and not a & b)
    closed = [data for data in history.closed_forks]
    gaps = [data["gap"] for data in closed if data["gap"] is not None]
    return {
        "switches": switches,
        "switch_rate": switches / len(pairs) if pairs else None,
        "forks": len(history.forks),
        "adopted": sum(data["kept"] == "rival" for data in closed),
        "mean_gap": sum(gaps) / len(gaps) if gaps else None,
        "families_used": sorted({f for s in sets for f in s}, key=FAMILIES.index),
    }
