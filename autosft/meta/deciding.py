"""From replies to a stored decision: each proposal is tried on the parent's pool, then one choice is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from autosft.actions import apply_recipe, load_build
from autosft.memory import Journal
from autosft.meta.approval import word_of
from autosft.meta.decide import Choice, choose, choose_rival, try_proposal
from autosft.meta.decision import decision_data
from autosft.meta.history import History
from autosft.meta.revise import rival_plans
from autosft.meta.sources import gather_sources
from autosft.pool import Pool
from autosft.subagents import Abstention, Proposal, parse_reply
from autosft.types import Recipe

if TYPE_CHECKING:
    from autosft.meta.agents import Agents
    from autosft.meta.campaign import Campaign


def write_decision(
    c: Campaign,
    agents: Agents | None,
    requests: Mapping[str, Any],
    key: str,
    number: int,
    replies: list[str],
    history: History,
    rejected: list[str],
) -> None:
    """Try the proposals on the parent's pool, choose, and store the decision.

    Args:
        c: The open campaign.
        agents: The meta agent and its office, under the policy `llm`.
        requests: Kinds beside the catalogue that may be proposed.
        key: Fingerprint of the decision.
        number: The round.
        replies: Artifact ids of the analysts' replies.
        history: What is recorded so far.
        rejected: Analysts whose proposals for this round an operator rejected.
    """
    parent = history.parent_for(number)
    assert parent is not None
    parent_build = load_build(c.store.load("build", parent.build))
    proposals, abstained = [], []
    for reply in replies:
        data = dict(c.store.load("reply", reply).data)
        checked = parse_reply(data, requests)
        if isinstance(checked, Abstention):
            abstained.append(checked)
        else:
            proposals.append(checked)
    fork = history.open_fork
    rival = fork is not None and fork.rival == number
    if rival:
        sources = gather_sources(c, number, parent, history)
        parsed = [parse_reply(plan) for plan in rival_plans(sources, parent)]
        proposals = [plan for plan in parsed if isinstance(plan, Proposal)]
    proposals = [proposal for proposal in proposals if proposal.analyst not in rejected]
    trials = (
        []
        if agents is not None and not rival
        else [
            try_proposal(
                p,
                parent.recipe,
                parent_build.pool,
                c.ctx,
                leaves=c.leaves,
                tried=history.effects,
                families=c.config.campaign.families,
            )
            for p in (proposals if rival else sorted(proposals, key=lambda p: p.analyst))
        ]
    )
    if rival:
        choice = choose_rival(trials)
    elif agents is not None:
        choice = agents.choose(number, parent, parent_build.pool, proposals, history)
    else:
        choice = choose(trials, history.past(), bundle=c.config.components.analysis)
    effect = effect_of(choice, parent.recipe, parent_build.pool, c)
    if choice.bundled and effect in history.effects:
        choice = choice.first_alone(f"together they equal round {history.effects[effect]}")
        effect = effect_of(choice, parent.recipe, parent_build.pool, c)
    with c.store.create("decision", key, {"round": number, "replies": replies}) as step:
        step.data = {
            **decision_data(number, parent.round, parent.recipe, choice, abstained),
            "effect": effect,
        }


def effect_of(choice: Choice, parent: Recipe, pool: Pool, c: Campaign) -> str:
    """Return the fingerprint of the pool that the accepted proposals together make of the parent's."""
    if len(choice.accepted) < 2:
        return choice.accepted[0].effect if choice.accepted else ""
    calls = tuple(call for trial in choice.accepted for call in trial.proposal.calls)
    step = Recipe(pool.fingerprint, calls, parent.budget_tokens, parent.order, parent.seed)
    return apply_recipe(step, pool, c.ctx)[0].fingerprint


def decision_entry(journal: Journal, number: int, decision: str) -> str:
    """Return the journal key of a decision: a round decided anew, because an operator invalidated a round
    or chose another parent before its hypothesis was registered, gets `N.2`, `N.3`, ..."""
    entry, again = str(number), 2
    while (known := journal.find("decision.taken", entry)) is not None:
        if known.data["decision"] == decision:
            break
        entry, again = f"{number}.{again}", again + 1
    return entry


def rejected_analysts(journal: Journal, number: int) -> list[str]:
    """Return the analysts whose proposals for a round an operator rejected."""
    found: set[str] = set()
    for entry in journal:
        if entry.kind != "decision.taken" or entry.key.split(".")[0] != str(number):
            continue
        word = word_of(journal, str(entry.data["decision"]))
        if word is not None and not word["approved"]:
            found.update(proposal["analyst"] for proposal in entry.data["accepted"])
    return sorted(found)
