"""The analysts of the policy `llm`: four that read one kind of evidence each, or one agent for everything."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from autosft.config import Config
from autosft.errors import ProposalError
from autosft.llm import render
from autosft.subagents.analyst import ANALYSTS, Analyst, abstention
from autosft.subagents.briefs import brief
from autosft.subagents.conversation import Abstained, Question
from autosft.subagents.evidence import Evidence, Finding, Sources
from autosft.subagents.menu import MADE, menu_text, requests
from autosft.subagents.office import SOLO, Office
from autosft.subagents.proposal import MAX_ACTIONS, Abstention, parse_reply
from autosft.subagents.tools import RowTools

#: Tools of each analyst; all are read-only.
TOOLS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "data": ("sample_rows", "count_rows", "grep_rows", "run_verifier"),
        "failures": ("answers", "sample_rows", "grep_rows", "run_verifier"),
        "dynamics": ("compare_rounds", "count_rows", "sample_rows"),
        "history": ("compare_rounds", "count_rows"),
        SOLO: ("sample_rows", "count_rows", "grep_rows", "run_verifier", "compare_rounds", "answers"),
    }
)
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "claim": {"type": "string", "description": "What is expected and why, one or two sentences."},
        "actions": {
            "type": "array",
            "maxItems": MAX_ACTIONS,
            "items": {
                "type": "object",
                "properties": {"kind": {"type": "string"}, "params": {"type": "object"}},
                "required": ["kind", "params"],
            },
        },
        "predicted": {"type": "object", "additionalProperties": {"type": "number"}},
        "reason": {"type": "string", "description": "Only to abstain: why nothing is proposed."},
    },
    "additionalProperties": False,
}


def model_analysts(config: Config, office: Office) -> tuple[Analyst, ...]:
    """Return the analysts: four with contexts of their own, or `solo` where the component is off."""
    if not config.components.analysis:
        return (Analyst(SOLO, _scores, _no_rules, functools.partial(_ask, SOLO, config, office)),)
    found = []
    for name, path in ANALYSTS.items():
        module = importlib.import_module(path)
        found.append(Analyst(name, module.collect, _no_rules, functools.partial(_ask, name, config, office)))
    return tuple(found)


def proposal_section(config: Config, leaves: list[str]) -> str:
    """Return the part of the prompt that says how to propose: the same bytes for every analyst."""
    return render("proposal", leaves=", ".join(leaves), menu=menu_text(config.llm, config.offered_programs))


def instructions(analyst: str, config: Config, leaves: list[str]) -> str:
    """Return an analyst's prompt."""
    return render(
        "solo_proposal" if analyst == SOLO else analyst,
        setting=render("setting"),
        data_rule=render("data_rule"),
        proposal=proposal_section(config, leaves),
    )


def _ask(
    analyst: str, config: Config, office: Office, evidence: Evidence, sources: Sources
) -> dict[str, Any]:
    def parse(data: Mapping[str, Any]) -> dict[str, Any]:
        return checked_reply(analyst, data, config, evidence, set(sources.leaf_scores))

    question = Question(
        role=analyst,
        round=sources.round,
        purpose="data_action",
        instructions=instructions(analyst, config, list(sources.leaf_scores)),
        parts=brief(evidence, sources),
        schema=SCHEMA,
        parse=parse,
        tools=RowTools(sources).tools(TOOLS[analyst]),
    )
    try:
        return office.ask(question, "propose")
    except Abstained as error:
        return abstention(f"no usable answer: {error}"[:600])


def checked_reply(
    analyst: str, data: Mapping[str, Any], config: Config, evidence: Evidence, leaves: set[str]
) -> dict[str, Any]:
    """Check an analyst's answer; return it as plain data.

    Raises:
        ProposalError: It does not fit the schema or the menu; names the offending text.
    """
    if "reason" in data and not data.get("actions"):
        reply = parse_reply({"analyst": analyst, "reason": data["reason"]})
        return _plain(reply)
    unknown = sorted(set(data) - {"claim", "actions", "predicted", "reason"})
    if unknown:
        raise ProposalError(
            f"unknown field {unknown[0][:60]!r}", where="answer", hint="claim, actions, predicted"
        )
    known = {
        "analyst": analyst,
        "claim": data.get("claim"),
        "actions": data.get("actions"),
        "predicted": data.get("predicted"),
        # What a proposal rests on is what was measured, not what a model says it is.
        "evidence": list(evidence.artifacts[:20]),
    }
    offered = requests(config.llm)
    reply = parse_reply(known, offered)
    if isinstance(reply, Abstention):
        return _plain(reply)
    for action in reply.actions:
        if action.kind in MADE:
            raise ProposalError(f"{action.kind} is not on the menu", where="actions", hint="use a request")
    strange = sorted(set(reply.predicted) - leaves)
    if strange:
        raise ProposalError(f"no leaf {strange[0][:60]!r}", where="predicted", hint="use the leaves listed")
    if not reply.predicted:
        raise ProposalError("no leaf is predicted to change", where="predicted", hint="name one at least")
    return _plain(reply)


def _plain(reply: Any) -> dict[str, Any]:
    data: dict[str, Any] = reply.model_dump(mode="json")
    data.pop("analyst")
    return data


def _scores(sources: Sources) -> list[Finding]:
    """Collect what the agent of the variant `base` is handed: scores; the rest it reads for itself."""
    return [Finding("leaf", leaf, {"score": round(s, 6)}) for leaf, s in sources.leaf_scores.items()]


def _no_rules(evidence: Evidence) -> dict[str, Any]:
    return abstention("this analyst needs a language model")
