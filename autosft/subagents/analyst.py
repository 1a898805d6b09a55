"""What an analyst is: one kind of evidence in, one executable proposal or an abstention out.

Adding one is one file with `collect` and `propose` and a line in `ANALYSTS`. Under the `rules` policy
`propose` is a deterministic function of the evidence; nothing an analyst sees comes from held-out suites
(I6).
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from autosft.config import POLICIES, Config
from autosft.errors import ConfigError
from autosft.subagents.evidence import Evidence, Finding, Sources

if TYPE_CHECKING:
    from autosft.subagents.office import Office

ANALYSTS: dict[str, str] = {
    "data": "autosft.subagents.data",
    "failures": "autosft.subagents.failures",
    "dynamics": "autosft.subagents.dynamics",
    "history": "autosft.subagents.past",
}
RANDOM_ANALYSTS = ("draw-1", "draw-2", "draw-3", "draw-4")


@dataclass(frozen=True, slots=True)
class Analyst:
    """One analyst; its two halves are functions of a module.

    Attributes:
        name: Analyst name.
        findings: Measures this analyst's part of the sources.
        reply: Turns evidence into a proposal or an abstention, as plain data.
        ask: The same with a language model, which may look into the sources; None under other policies.
    """

    name: str
    findings: Callable[[Sources], list[Finding]]
    reply: Callable[[Evidence], dict[str, Any]]
    ask: Callable[[Evidence, Sources], dict[str, Any]] | None = None

    def collect(self, sources: Sources, attempt: int) -> Evidence:
        """Measure this analyst's part of the sources."""
        findings = tuple(self.findings(sources))
        return Evidence(self.name, sources.round, findings, sources.artifacts, attempt, sources.families)

    def read(self, data: Mapping[str, Any]) -> Evidence:
        """Read stored evidence back."""
        return Evidence.from_json(data)

    def propose(self, evidence: Evidence, sources: Callable[[], Sources] | None = None) -> dict[str, Any]:
        """Return the reply as plain data; the caller checks it like any other policy's reply.

        Args:
            evidence: What `collect` measured.
            sources: Gathers what it was measured on, for an analyst that asks a language model.
        """
        if self.ask is not None and sources is not None:
            return {"analyst": self.name, **self.ask(evidence, sources())}
        return {"analyst": self.name, **self.reply(evidence)}


def analysts_for(config: Config, office: Office | None = None) -> tuple[Analyst, ...]:
    """Return the analysts of a campaign's policy.

    Args:
        config: Names the policy and the components.
        office: Asks language models, for the policy `llm`.

    Raises:
        ConfigError: The policy is not known, or it is `llm` and there is no office.
    """
    name = config.policy.name
    if name == "seed-only":
        return ()
    if name == "rules":
        return _rules_analysts(config)
    if name == "random":
        from autosft.subagents import sampled

        reply = functools.partial(sampled.propose, seed=config.policy.seed)
        return tuple(Analyst(drawer, sampled.collect, reply) for drawer in RANDOM_ANALYSTS)
    if name == "mix-only":
        from autosft.subagents import mixture

        return (Analyst("mixture", mixture.collect, mixture.propose),)
    if name == "llm" and office is not None:
        from autosft.subagents.model_analysts import model_analysts

        return model_analysts(config, office)
    raise ConfigError(f"no policy named {name!r}", where="policy.name", hint=f"has: {', '.join(POLICIES)}")


def _rules_analysts(config: Config) -> tuple[Analyst, ...]:
    """Return the deterministic analysts of the campaign's components."""
    wanted = dict(ANALYSTS) if config.components.analysis else {"base": "autosft.subagents.aggregate"}
    if config.components.synthesis:
        wanted["synthesis"] = "autosft.subagents.synthesis"
    modules = {name: importlib.import_module(path) for name, path in wanted.items()}
    return tuple(Analyst(name, module.collect, module.propose) for name, module in modules.items())


def proposal(
    claim: str, actions: list[tuple[str, dict[str, Any]]], predicted: Mapping[str, float], evidence: Evidence
) -> dict[str, Any]:
    """Return a proposal as plain data."""
    return {
        "claim": claim,
        "actions": [{"kind": kind, "params": params} for kind, params in actions],
        "predicted": {leaf: round(min(1.0, max(-1.0, delta)), 4) for leaf, delta in predicted.items()},
        "evidence": list(evidence.artifacts[:20]),
    }


def pick(candidates: list[dict[str, Any]], evidence: Evidence, why_none: str) -> dict[str, Any]:
    """Return the first candidate that was not run from this parent yet, or an abstention.

    Args:
        candidates: Proposals, best first.
        evidence: Says how many of this analyst's proposals were run from the parent.
        why_none: Reason of the abstention where there is no candidate at all.
    """
    if not candidates:
        return abstention(why_none)
    candidates = [kept for kept in (within(c, evidence.families) for c in candidates) if kept is not None]
    if not candidates:
        return abstention("every idea uses a family that campaign.families leaves out")
    if evidence.attempt >= len(candidates):
        return abstention(f"all {len(candidates)} ideas were run from this parent")
    return candidates[evidence.attempt]


def within(candidate: dict[str, Any], families: Sequence[str] | None) -> dict[str, Any] | None:
    """Return a proposal without the actions of families that are left out, or None if none remains.

    Args:
        candidate: A proposal as plain data.
        families: Families the campaign allows; None for all.
    """
    if families is None:
        return candidate
    actions = [a for a in candidate["actions"] if str(a["kind"]).split("/", maxsplit=1)[0] in families]
    return {**candidate, "actions": actions} if actions else None


def abstention(reason: str) -> dict[str, Any]:
    """Return an abstention as plain data."""
    return {"reason": reason}
