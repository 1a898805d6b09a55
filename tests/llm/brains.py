"""Scripted models that play every role of a lab campaign."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.llm.servers import Asked, Said

ROUND = re.compile(r"Round (\d+) is planned")


SIGNS = (
    ("analyst of training data", "data"),
    ("analyst of failure cases", "failures"),
    ("analyst of learning dynamics", "dynamics"),
    ("analyst of research history", "history"),
    ("You look after training runs", "executor"),
    ("You may extend the tree", "tree"),
    ("You decide which proposals", "meta"),
    ("You write training examples", "synthesis"),
    ("You review training examples", "review"),
    ("You answer prompts so that", "teacher"),
    ("Your context is nearly full", "compaction"),
    ("Plan the next round", "solo"),
)


def number(asked: Asked) -> int:
    found = [int(m) for text in asked.texts for m in ROUND.findall(text)]
    return found[-1] if found else 0


def proposal(kind: str, params: dict[str, Any], leaf: str, gain: float) -> dict[str, Any]:
    return {
        "claim": f"{kind} helps.",
        "actions": [{"kind": kind, "params": params}],
        "predicted": {leaf: gain},
    }


def role_of(asked: Asked) -> str:
    """Return the role, by what its instructions say: in the shared context the newest instructions count."""
    # In the shared context the newest instructions count; results of tools come after them.
    texts = [asked.system] if "alone:" not in asked.system else list(reversed(asked.texts))
    for text in texts:
        for sign, role in SIGNS:
            if sign in text:
                return role
    return "?"


def sensible(asked: Asked) -> Said:
    """A model that reads once, then answers what is asked."""
    role, n = role_of(asked), number(asked)
    leaf = "postscript"
    answers: dict[str, Any] = {
        "data": proposal("prune/verifier", {"checks": "all"}, leaf, 0.1)
        if n == 1
        else proposal("prune/near_duplicates", {"threshold": round(0.95 - 0.03 * n, 2)}, leaf, 0.05),
        "failures": proposal("synthesize/written", {"leaf": leaf, "rows": 3}, leaf, 0.3),
        "dynamics": proposal("mix/leaf_weights", {"factors": {leaf: 1.0 + 0.2 * n}}, leaf, 0.04),
        "history": {"reason": "nothing on record to go on from"},
        "solo": proposal("mix/leaf_weights", {"factors": {leaf: 1.0 + 0.2 * n}}, leaf, 0.04),
        "executor": {"actions": {}, "note": "all runs finished"},
        "tree": {
            "add": [
                {
                    "path": f"extra/short_answer_{n}",
                    "verifier": "lab:lowercase",
                    "params": {},
                    "description": "All letters are lower case.",
                    "prompt": "Say hello.",
                    "passes": "hello there",
                    "fails": "Hello There",
                }
            ]
        },
        "meta": {"choose": _choice(asked), "why": "most expected"},
        "review": {"verdicts": [{"row": i, "keep": True, "why": "fine"} for i in range(20)]},
        "teacher": {"answers": []},
        "compaction": {"summary": "Rounds so far changed the weight of one leaf."},
    }
    if role in ("data", "solo") and len(asked.texts) == 1 and "count_rows" in asked.tools:
        return Said(calls=(("count_rows", {"by": "leaf"}),))
    if role == "synthesis":
        return Said(calls=(("answer", {"rows": written(asked)}),))
    return Said(calls=(("answer", answers[role]),)) if role in answers else Said(text="I do not understand.")


def written(asked: Asked) -> list[dict[str, str]]:
    """Write rows like the passing example; the third breaks the requirement."""
    example = json.loads(re.search(r"A passing example: (\{.*\})", asked.system + asked.texts[-1]).group(1))
    salt = sum(map(ord, "".join(asked.texts))) % 97
    words = ["river", "lantern", "orchard", "harbour"]
    rows = [
        {
            "prompt": f"{example['prompt']} Mention a {w} and the number {salt}.",
            "response": f"A {w} {salt}. {example['response']}",
        }
        for w in words
    ]
    return [*rows, {"prompt": "Nothing to do with it", "response": "x"}]


def _choice(asked: Asked) -> list[str]:
    names = re.search(r"Names that can be chosen: ([\w, -]+)", asked.system + "\n" + "\n".join(asked.texts))
    return sorted(names.group(1).split(", "), reverse=True)[:2] if names else []
