"""What an analyst is: one kind of evidence in, one executable proposal or an abstention out.

Adding one is one file with `collect` and `propose` and a line in `ANALYSTS`. Under the `rules` policy
`propose` is a deterministic function of the evidence; nothing an analyst sees comes from held-out suites
(I6).
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from autosft.config import Config
from autosft.errors import ConfigError
from autosft.subagents.evidence import Evidence, Finding, Sources

ANALYSTS: dict[str, str] = {
    "data": "autosft.subagents.data",
    "failures": "autosft.subagents.failures",
    "dynamics": "autosft.subagents.dynamics",
    "history": "autosft.subagents.past",
}


@dataclass(frozen=True, slots=True)
class Analyst:
    """One analyst under the rules policy; `module` has `collect(sources)` and `propose(evidence)`."""

    name: str
    module: ModuleType

    def collect(self, sources: Sources) -> Evidence:
        """Measure this analyst's part of the sources."""
        findings: list[Finding] = self.module.collect(sources)
        return Evidence(self.name, sources.round, tuple(findings), sources.artifacts)

    def read(self, data: Mapping[str, Any]) -> Evidence:
        """Read stored evidence back."""
        return Evidence.from_json(data)

    def propose(self, evidence: Evidence) -> dict[str, Any]:
        """Return the reply as plain data; the caller checks it like any other policy's reply."""
        reply: dict[str, Any] = self.module.propose(evidence)
        return {"analyst": self.name, **reply}


def analysts_for(config: Config) -> tuple[Analyst, ...]:
    """Return the analysts of a campaign's policy and components.

    Raises:
        ConfigError: The policy is not known.
    """
    if config.policy.name != "rules":
        raise ConfigError(
            f"no policy named {config.policy.name!r}", where="policy.name", hint="this version has: rules"
        )
    return tuple(Analyst(name, importlib.import_module(module)) for name, module in ANALYSTS.items())


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


def abstention(reason: str) -> dict[str, Any]:
    """Return an abstention as plain data."""
    return {"reason": reason}
