"""The closed catalogue of actions, read from the files of the family folders."""

from __future__ import annotations

import difflib
import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from autosft.actions.context import ActionContext
from autosft.actions.params import ActionParams
from autosft.errors import ActionParamsError, UnknownActionError
from autosft.pool import Pool
from autosft.types import FAMILIES, ActionCall

PACKAGE = "autosft.actions"


@dataclass(frozen=True, slots=True)
class Action:
    """One action of the catalogue.

    Attributes:
        kind: `family/name`, the file's path.
        doc: The file's docstring; its first line says what the action does.
        params: The closed parameter schema.
        example: Parameters that fit the schema.
        run: `apply(pool, params, ctx) -> Pool`.
        proposed: Whether it stands on the menu; others only carry what a model or a program made.
    """

    kind: str
    doc: str
    params: type[ActionParams]
    example: Mapping[str, Any]
    run: Callable[[Pool, Any, ActionContext], Pool]
    proposed: bool = True

    @property
    def family(self) -> str:
        """The family the action belongs to."""
        return self.kind.split("/", 1)[0]

    def read_params(self, params: Mapping[str, Any]) -> ActionParams:
        """Check parameters and complete them with defaults.

        Raises:
            ActionParamsError: They do not fit; names the field, what was given and what is allowed.
        """
        try:
            return self.params.model_validate(dict(params))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            field = ".".join(str(part) for part in first["loc"]) or "params"
            given = repr(first.get("input"))[:120]
            raise ActionParamsError(
                f"{first['msg']}; given {given}",
                where=f"{self.kind}, {field}",
                hint=self._allowed(first["loc"]),
            ) from None

    def describe(self) -> dict[str, Any]:
        """Return the catalogue entry as plain data."""
        return {
            "kind": self.kind,
            "family": self.family,
            "doc": self.doc,
            "schema": self.params.model_json_schema(),
            "example": dict(self.example),
        }

    def _allowed(self, loc: tuple[int | str, ...]) -> str:
        fields = self.params.model_json_schema()["properties"]
        name = str(loc[0]) if loc else ""
        if name not in fields:
            return f"takes {', '.join(fields) or 'no parameters'}"
        words = {"exclusiveMinimum": "more than", "minimum": "at least", "exclusiveMaximum": "less than"}
        words |= {
            "maximum": "at most",
            "enum": "one of",
            "minLength": "characters at least",
            "maxLength": "at most",
        }
        limits = [
            f"{words[k]} {v}"
            for part in _parts(fields[name])
            for k in words
            if (v := part.get(k)) is not None
        ]
        return f"{name}: {', '.join(dict.fromkeys(limits)) or fields[name].get('type', 'see the schema')}"


def _parts(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    nested = [
        *schema.get("anyOf", ()),
        *(schema[k] for k in ("items", "additionalProperties") if k in schema),
    ]
    return [schema, *(part for n in nested if isinstance(n, Mapping) for part in _parts(n))]


@functools.cache
def kinds() -> tuple[str, ...]:
    """Return every kind of the catalogue, by family, then name."""
    root = Path(__file__).parent
    return tuple(
        f"{family}/{module.name}"
        for family in FAMILIES
        for module in sorted(pkgutil.iter_modules([str(root / family)]), key=lambda m: m.name)
        if not module.name.startswith("_")
    )


@functools.cache
def load(kind: str) -> Action:
    """Return an action of the catalogue; nothing outside it is ever imported.

    Raises:
        UnknownActionError: The kind is not in the catalogue; names the nearest one.
    """
    if kind not in kinds():
        near = difflib.get_close_matches(kind, kinds(), n=1, cutoff=0.0)
        raise UnknownActionError(f"no action {kind[:120]!r}", hint=f"nearest: {near[0]}")
    family, name = kind.split("/")
    module = importlib.import_module(f"{PACKAGE}.{family}.{name}")
    return Action(
        kind,
        inspect.cleandoc(module.__doc__ or ""),
        module.Params,
        module.EXAMPLE,
        module.apply,
        getattr(module, "PROPOSED", True),
    )


def check_call(call: ActionCall) -> ActionCall:
    """Return the call with its parameters checked and completed with defaults.

    Raises:
        UnknownActionError: The kind is not in the catalogue.
        ActionParamsError: The parameters do not fit.
    """
    return ActionCall(call.kind, load(call.kind).read_params(call.params).model_dump(mode="json"))


def catalogue() -> list[dict[str, Any]]:
    """Return the menu as plain data: kind, family, doc, JSON schema of the parameters, example."""
    return [load(kind).describe() for kind in kinds() if load(kind).proposed]
