"""What agents may propose: the catalogue of actions, and requests whose rows are made before they are tried.

A request (`synthesize/written`, `resupervise/teacher`, ...) is fulfilled by a role or by a program; what
comes out is frozen as an artifact, and the recipe gets an action that names the artifact. A rebuild never
asks a model again.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Annotated, Any

import orjson
from pydantic import Field

from autosft.actions import catalogue
from autosft.actions.params import ActionParams, Checks, Name, Names
from autosft.config import LlmSettings

#: Actions that only requests may put into a recipe.
MADE = ("repair/made", "resupervise/made", "synthesize/made")
Code = Annotated[str, Field(min_length=1, max_length=6_000)]


class Written(ActionParams):
    """New rows for a leaf, written by a language model; each passes verifier, review and decontamination."""

    leaf: Name
    rows: int = Field(20, ge=1, le=20_000)
    brief: str = Field("", max_length=600, description="What the rows should be about and how they vary.")


class Teacher(ActionParams):
    """Failing responses answered anew by a stronger language model; an answer must pass its checks."""

    leaves: Names | None = None
    rows: int = Field(20, ge=1, le=20_000)
    checks: Checks = "all"


class Checkpoint(ActionParams):
    """Failing responses answered anew by the parent's own checkpoint: several samples, shortest passing."""

    leaves: Names | None = None
    rows: int = Field(40, ge=1, le=20_000)
    samples: int = Field(4, ge=1, le=16)
    temperature: float = Field(0.7, gt=0, le=2)
    checks: Checks = "all"


class PruneProgram(ActionParams):
    """Rows dropped by a Python function `keep(row) -> bool`; row has prompt, response, source, leaf."""

    code: Code
    leaves: Names | None = None


class RepairProgram(ActionParams):
    """Responses edited by a Python function `repair(row) -> str`; an edit must pass all checks of its row."""

    code: Code
    leaves: Names | None = None


class SynthesizeProgram(ActionParams):
    """New rows from a Python function `write(i) -> {"prompt", "response"}`; each must pass its verifier."""

    code: Code
    leaf: Name
    rows: int = Field(50, ge=1, le=2_000)


_ALWAYS: Mapping[str, type[ActionParams]] = {
    "synthesize/written": Written,
    "resupervise/teacher": Teacher,
    "resupervise/sampled": Checkpoint,
}
_PROGRAMS: Mapping[str, type[ActionParams]] = {
    "prune/program": PruneProgram,
    "repair/program": RepairProgram,
    "synthesize/program": SynthesizeProgram,
}


def requests(settings: LlmSettings) -> dict[str, type[ActionParams]]:
    """Return the requests on offer, kind -> parameters."""
    return {**_ALWAYS, **(_PROGRAMS if settings.programs else {})}


def menu_text(settings: LlmSettings, programs: tuple[str, ...]) -> str:
    """Return the menu as agents read it: one line an action with its parameters."""
    lines = [
        f"- {entry['kind']}: {entry['doc'].splitlines()[0]} {_params(entry['schema'])}"
        for entry in _catalogue()
    ]
    for kind, params in requests(settings).items():
        lines.append(
            f"- {kind}: {(params.__doc__ or '').splitlines()[0]} {_params(params.model_json_schema())}"
        )
    named = f"Programs on offer for `program`: {', '.join(programs) or 'none'}."
    return "\n".join([*lines, named])


@functools.cache
def _catalogue() -> tuple[dict[str, Any], ...]:
    return tuple(catalogue())


def _params(schema: Mapping[str, Any]) -> str:
    definitions = schema.get("$defs", {})
    fields = {
        name: _type(field, definitions) + ("" if name in schema.get("required", ()) else "?")
        for name, field in schema.get("properties", {}).items()
    }
    return orjson.dumps(fields).decode()


def _type(field: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    if "$ref" in field:
        return _type(definitions[field["$ref"].rsplit("/", 1)[1]], definitions)
    if "anyOf" in field:
        return " or ".join(_type(option, definitions) for option in field["anyOf"])
    if "enum" in field:
        return "|".join(map(str, field["enum"]))
    kind = str(field.get("type", "any"))
    if kind == "array":
        return f"[{_type(field['items'], definitions)}]"
    if kind == "object":
        inner = field.get("properties")
        if inner:
            return (
                "{" + ", ".join(f"{name}: {_type(part, definitions)}" for name, part in inner.items()) + "}"
            )
        return "{name: " + _type(field.get("additionalProperties") or {}, definitions) + "}"
    low = field.get("minimum", field.get("exclusiveMinimum"))
    high = field.get("maximum", field.get("exclusiveMaximum"))
    return kind if low is None and high is None else f"{kind} {low}..{high}"
