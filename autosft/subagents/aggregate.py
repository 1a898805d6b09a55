"""The `base` component under the rules policy: one agent that sees aggregate scores only and does everything.

It has the same action menu as the analysts but none of their evidence: no leaf scores, no failing rows, no
losses. All it can do is try one family after the other, go on with what raised the score and leave what did
not.
"""

from __future__ import annotations

from typing import Any

from autosft.subagents.analyst import pick, proposal
from autosft.subagents.evidence import Evidence, Finding, Sources
from autosft.types import FAMILIES


def collect(sources: Sources) -> list[Finding]:
    """Report the score and change of every round, the pool's size, and the names that actions need."""
    findings = [
        Finding(
            "round",
            str(past.round),
            {"families": " ".join(past.families), "score": past.score or 0.0, "delta": past.delta or 0.0},
        )
        for past in sources.rounds
    ]
    findings.append(Finding("pool", "all", {"rows": len(sources.pool)}))
    findings += [Finding("program", name, {"name": name}) for name in sources.programs]
    return findings + [Finding("leaf", leaf, {"named": 1}) for leaf in sources.leaf_scores]


def propose(evidence: Evidence) -> dict[str, Any]:
    """Try families in the catalogue's order, those that raised the score first."""
    gain: dict[str, float] = dict.fromkeys(FAMILIES, 0.0)
    for values in evidence.of("round").values():
        for family in str(values["families"]).split():
            gain[family] += float(values["delta"])
    menu = _menu(evidence)
    order = [str(family) for family in FAMILIES]
    families = sorted(menu, key=lambda family: (-gain[family], order.index(family)))
    predicted = dict.fromkeys(evidence.of("leaf"), 0.01)
    candidates = [
        proposal(f"Another look at {family}: {kind}.", [(kind, params)], predicted, evidence)
        for turn in range(max(len(actions) for actions in menu.values()))
        for family in families
        for kind, params in menu[family][turn : turn + 1]
    ]
    return pick(candidates, evidence, "the menu is empty")


def _menu(evidence: Evidence) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """Return a few actions of each family that need no evidence to be filled in."""
    menu: dict[str, list[tuple[str, dict[str, Any]]]] = {
        "mix": [
            ("mix/temperature", {"temperature": 2.0, "by": "source"}),
            ("mix/temperature", {"temperature": 2.0, "by": "leaf"}),
            ("mix/leaf_weights", {"plain": 0.5}),
        ],
        "prune": [("prune/exact_duplicates", {}), ("prune/verifier", {}), ("prune/near_duplicates", {})],
        "repair": [("repair/verifier_edit", {}), ("repair/prompt_reword", {"frac": 0.5})],
        "order": [("order/shuffle", {}), ("order/curriculum", {"by": "length"}), ("order/verified_last", {})],
    }
    for name in evidence.of("program"):
        menu["resupervise"] = [("resupervise/program", {"program": name})]
        menu["synthesize"] = [
            ("synthesize/template", {"program": name, "leaf": leaf, "rows": 100})
            for leaf in sorted(evidence.of("leaf"))
        ]
    return menu
