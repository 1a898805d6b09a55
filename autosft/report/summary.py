"""The summary of a report: sentences for people who did not follow the campaign, each from a record.

Nothing is called a gain whose interval holds zero, and what could not have been seen is said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from autosft.report.text import count, duration, score

View = Mapping[str, Any]
BESTS_NAMED = 4


def headline(view: View) -> str:
    """Return the one sentence that says how it went."""
    gain, status = view["gain"], view["status"]
    if not view["rounds"]:
        return "No round has been measured yet."
    if status["round0_score"] is None:
        return "The untouched pool has no score yet, so nothing can be compared with it."
    if len(view["rounds"]) == 1:
        return f"Only the untouched pool has been measured: it scores {score(status['round0_score'])}."
    if all(r["score"] is None for r in view["rounds"] if r["round"] > 0):
        return "No changed recipe has been measured: every one was abandoned."
    if gain is None:
        return f"No recipe scored higher than the untouched pool ({score(status['round0_score'])})."
    change = score(gain["diff"], signed=True)
    interval = _interval(gain)
    if gain["verdict"] != "better":
        return (
            f"No gain is established: round {gain['round']} scores highest, but its difference from the "
            f"untouched pool ({change}{interval}) is not distinguishable from chance."
        )
    if gain["claimed"]:
        return (
            f"The data changes of round {gain['round']} raise the score by {change}{interval}, confirmed "
            "with fresh training seeds."
        )
    return (
        f"Round {gain['round']} scores {change}{interval} above the untouched pool, but this was not "
        "confirmed with fresh training seeds, so it is not claimed."
    )


def sentences(view: View) -> list[str]:
    """Return the summary's further sentences, in reading order."""
    found = [_what(view), _where(view), *_detectable(view), *_worked(view), *_bias(view)]
    found += [*_voids(view), *_pool(view), *_revisions(view), *_cost(view)]
    return [text for text in found if text]


def _interval(data: View) -> str:
    if data.get("ci_low") is None or data.get("ci_high") is None:
        return ""
    return f", 95 % interval {score(data['ci_low'], signed=True)} to {score(data['ci_high'], signed=True)}"


def _what(view: View) -> str:
    rounds, status = view["rounds"], view["status"]
    tried = sum(1 for r in rounds if r["round"] > 0)
    seeds = max((r["n_seeds"] for r in rounds if r["round"] == 0), default=0)
    return (
        f"{_number(tried, 'training-data recipe was', 'training-data recipes were')} tried on the same base "
        f"model, each trained on {count(status['budget_tokens'])} tokens in "
        f"{count(status['optimizer_steps'])} steps with {_number(seeds, 'training seed', 'training seeds')}. "
        "Only the data differed."
    )


def _where(view: View) -> str:
    state, best = view["status"]["state"], view["status"]["incumbent"]
    ends = {
        "stopped": f"The campaign has ended: {view['status']['stop_reason']}.",
        "running": "The campaign is still running; this page shows what was recorded when it was made.",
        "interrupted": "The campaign was interrupted and can be continued.",
    }
    lead = (
        ""
        if best is None
        else f" The highest score is round {best}'s, {score(view['status']['incumbent_score'])}."
    )
    return ends.get(state, "") + lead


def _detectable(view: View) -> list[str]:
    smallest = sorted(h["mde"] for h in view["hypotheses"] if h["mde"] is not None)
    if not smallest:
        return []
    typical = smallest[len(smallest) // 2]
    return [
        f"A comparison of two rounds could have found a true difference of about {score(typical)} (with 80 % "
        "probability); smaller ones stay unseen, and “not distinguishable” does not mean “equal”."
    ]


def _worked(view: View) -> list[str]:
    lines = []
    void = {r["round"] for r in view["lineage"] if r["invalidated"]}
    bests = [r for r in view["rounds"] if r["set_new_best"] and r["round"] > 0 and r["round"] not in void]
    if bests:
        parts = [f"round {r['round']} ({_families(r['families'])})" for r in bests[-BESTS_NAMED:]]
        last = f", the last of {len(bests)}" if len(bests) > BESTS_NAMED else ""
        lines.append(
            f"New highest scores came from {_listed(parts)}{last}."
            + (
                " Where a round holds several actions its effect belongs to all of them together."
                if any(sum(r["families"].values()) > 1 for r in bests)
                else ""
            )
        )
    outcomes: dict[str, int] = {}
    for hypothesis in view["hypotheses"]:
        if hypothesis["round"] > 0:
            outcomes[hypothesis["state"]] = outcomes.get(hypothesis["state"], 0) + 1
    if outcomes:
        lines.append(
            f"Of {_number(sum(outcomes.values()), 'hypothesis', 'hypotheses')} about a change of the data, "
            f"{_listed([f'{n} {_was(n)} {state}' for state, n in outcomes.items()])}."
        )
    return lines


def _was(n: int) -> str:
    return "is" if n == 1 else "are"


def _bias(view: View) -> list[str]:
    bias = (view["bias"] or {}).get("remeasured")
    if not bias or not bias["n"] or bias["bias"] is None:
        return []
    return [
        f"Re-measured with fresh seeds, {_number(bias['n'], 'candidate', 'candidates')} scored "
        f"{score(abs(bias['bias']))} {'lower' if bias['bias'] > 0 else 'higher'} on average than with the "
        f"seeds {'it was' if bias['n'] == 1 else 'they were'} chosen by. Claims rest on fresh seeds alone."
    ]


def _voids(view: View) -> list[str]:
    void = [r for r in view["lineage"] if r["invalidated"]]
    lost = [r for r in view["lineage"] if r["status"] != "ok"]
    lines = []
    if void:
        lines.append(
            f"{_rounds(void)} {'does' if len(void) == 1 else 'do'} not count: declared invalid, or descended "
            "from such a round."
        )
    if lost:
        lines.append(f"{_rounds(lost)} {'was' if len(lost) == 1 else 'were'} abandoned without a score.")
    return lines


def _pool(view: View) -> list[str]:
    tokens = {p["round"]: p["unique_tokens"] for p in view["pool"] if p["unique_tokens"]}
    best = view["status"]["incumbent"]
    if 0 not in tokens or best not in tokens or best == 0:
        return []
    share = tokens[best] / tokens[0]
    if share >= 1:
        return []
    return [
        f"The best round trains on {share:.0%} of the untouched pool's unique tokens"
        + ("; so small a pool may serve the measured skills only." if share < 0.5 else ".")
    ]


def _revisions(view: View) -> list[str]:
    metrics = view["strategy"]
    if not metrics["forks"]:
        return []
    decided = sum(r["arm"] == "rival" and r["kept"] is not None for r in view["lineage"])
    kept = f"the rival was kept {_times(metrics['adopted'])}" if decided else "which is better is not decided"
    return [f"The campaign ran a rival plan beside its own {_times(metrics['forks'])}; {kept}."]


def _cost(view: View) -> list[str]:
    total = view["spend"]["total"]
    parts = []
    if total.get("device_s"):
        parts.append(f"{duration(total['device_s'])} of device time")
    if total.get("llm_tokens"):
        parts.append(f"{count(total['llm_tokens'])} language-model tokens")
    if total.get("usd"):
        parts.append(f"${total['usd']:.2f}")
    return [f"It cost {_listed(parts)}."] if parts else []


def _rounds(rows: Sequence[View]) -> str:
    numbers = [str(r["round"]) for r in rows]
    return f"Round {numbers[0]}" if len(numbers) == 1 else f"Rounds {_listed(numbers)}"


def _families(families: Mapping[str, int]) -> str:
    return ", ".join(families) or "no effect"


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _times(n: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(n, f"{count(n)} times")


def _number(n: int, one: str, many: str) -> str:
    return f"{count(n)} {one if n == 1 else many}"
