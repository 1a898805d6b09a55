"""The policy `random`: proposals drawn uniformly over the catalogue, the baseline that any agent has to beat.

Same menu, same ranges, same number of proposals and actions, same guards and keep rule as every other
policy; only the evidence is ignored. A family is drawn first, then an action of it, so that families with
many actions have no head start; parameters are drawn from the action's own schema, names from what the pool
holds.
"""

from __future__ import annotations

import random
from typing import Any

from autosft.actions import catalogue, check_call
from autosft.errors import ActionError
from autosft.identity import fingerprint
from autosft.subagents.analyst import abstention, proposal
from autosft.subagents.evidence import Evidence, Finding, Sources
from autosft.types import FAMILIES, ActionCall

MAX_TRIES = 200
MAX_ACTIONS = 3
# An optional filter is left open this often: most real actions apply to the whole pool.
OPEN_FRAC = 0.5
NAMES_DRAWN = 5
# Draws of whole numbers without a small upper bound stay in the range where they can matter.
LARGEST_COUNT = 500


def collect(sources: Sources) -> list[Finding]:
    """List what parameters can name: leaves, sources, programs, training artifacts, some row ids."""
    pool = sources.pool
    names = {
        "leaf": sorted({leaf for leaf in pool.leaves if leaf} | set(sources.leaf_scores)),
        "source": sorted(set(pool.sources)),
        "program": list(sources.programs),
        "artifact": [folder.name for folder in sources.runs.values()],
        "row": pool.ids[:: max(1, len(pool) // 50)][:50],
    }
    return [
        Finding("name", f"{kind}/{i}", {"kind": kind, "name": name})
        for kind, found in names.items()
        for i, name in enumerate(found)
    ] + [Finding("leaf", leaf, {"score": score}) for leaf, score in sources.leaf_scores.items()]


def propose(evidence: Evidence, seed: int, families: tuple[str, ...] = FAMILIES) -> dict[str, Any]:
    """Draw one to three actions; the draw depends on the seed, the round and the analyst's name only."""
    rng = random.Random(fingerprint([seed, evidence.round, evidence.analyst]))
    names: dict[str, list[str]] = {}
    for values in evidence.of("name").values():
        names.setdefault(str(values["kind"]), []).append(str(values["name"]))
    allowed = families if evidence.families is None else evidence.families
    menu = [entry for entry in catalogue() if entry["family"] in allowed and entry["family"] in families]
    actions: list[tuple[str, dict[str, Any]]] = []
    wanted = rng.randint(1, MAX_ACTIONS)
    for _ in range(MAX_TRIES):
        if len(actions) == wanted:
            break
        family = rng.choice(sorted({entry["family"] for entry in menu}))
        entry = rng.choice([entry for entry in menu if entry["family"] == family])
        try:
            call = check_call(ActionCall(entry["kind"], _draw_params(entry["schema"], names, rng)))
        except ActionError:
            continue
        actions.append((call.kind, dict(call.params)))
    if not actions:
        return abstention("nothing that was drawn fits its schema")
    leaves = evidence.of("leaf")
    return proposal("A random draw from the catalogue.", actions, dict.fromkeys(leaves, 0.0), evidence)


def _draw_params(schema: dict[str, Any], names: dict[str, list[str]], rng: random.Random) -> dict[str, Any]:
    drawn = {}
    for name, field in schema.get("properties", {}).items():
        value = _draw(name, field, schema, names, rng)
        if value is not None:
            drawn[name] = value
    return drawn


def _draw(
    name: str, field: dict[str, Any], schema: dict[str, Any], names: dict[str, list[str]], rng: random.Random
) -> Any:
    """Draw one value; None leaves the field at its default."""
    if "$ref" in field:
        field = schema["$defs"][field["$ref"].rsplit("/", 1)[1]]
    if "anyOf" in field:
        real = next(option for option in field["anyOf"] if option.get("type") != "null")
        return None if rng.random() < OPEN_FRAC else _draw(name, real, schema, names, rng)
    if "enum" in field:
        return rng.choice(field["enum"])
    kind = field.get("type")
    if kind == "boolean":
        return rng.random() < 0.5
    if kind == "integer":
        high = min(int(field.get("maximum", LARGEST_COUNT)), max(LARGEST_COUNT, int(field.get("minimum", 0))))
        return rng.randint(int(field.get("minimum", 0)), high)
    if kind == "number":
        low, high = field.get("minimum", field.get("exclusiveMinimum", 0.0)), field.get("maximum", 1.0)
        return round(rng.uniform(low, high), 3)
    known = _known(name, names)
    if kind == "string":
        return rng.choice(known) if known else None
    if kind == "array" and "$ref" not in field["items"]:
        return rng.sample(known, rng.randint(1, min(NAMES_DRAWN, len(known)))) if known else None
    if kind == "array":
        return _draw_phases(names, rng)
    if kind == "object" and "properties" not in field and known:
        chosen = rng.sample(known, rng.randint(1, min(NAMES_DRAWN, len(known))))
        value = field["additionalProperties"]
        return {key: _draw(name, value, schema, names, rng) for key in chosen}
    return None


def _known(field: str, names: dict[str, list[str]]) -> list[str]:
    """Return what a field of this name can name."""
    kinds = {
        "leaves": "leaf",
        "leaf": "leaf",
        "factors": "leaf",
        "sources": "source",
        "shares": "source",
        "program": "program",
        "artifact": "artifact",
        "ids": "row",
    }
    return names.get(kinds.get(field, ""), [])


def _draw_phases(names: dict[str, list[str]], rng: random.Random) -> list[dict[str, Any]]:
    """Draw one block of leaves and where in the budget it lies."""
    leaves = names.get("leaf", [])
    if not leaves:
        return []
    start = rng.uniform(0, 0.8)
    chosen = rng.sample(leaves, rng.randint(1, min(NAMES_DRAWN, len(leaves))))
    return [{"names": chosen, "start": round(start, 3), "end": round(rng.uniform(start + 0.1, 1.0), 3)}]
