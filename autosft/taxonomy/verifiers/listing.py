"""The closed listing of verifiers, read from the files of this folder on first use."""

from __future__ import annotations

import difflib
import functools
import importlib
import inspect
import pkgutil
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from autosft.errors import VerifierError
from autosft.taxonomy.verifiers.example import Example

PACKAGE = "autosft.taxonomy.verifiers"
_REQUIRED = inspect.Parameter.empty
#: Official ids that are no module names, by the id their file would give them.
_OFFICIAL = {"format:sub_bullets": "format:sub-bullets"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a requirement.

    Attributes:
        name: Its name.
        annotation: int (0 or more), str, bool, list[str], a Literal, or a union of these.
        default: Default value, or `inspect.Parameter.empty` where the argument must be given.
    """

    name: str
    annotation: Any
    default: Any

    @property
    def required(self) -> bool:
        """True where the argument must be given."""
        return self.default is _REQUIRED

    def describe(self) -> str:
        """Return the argument as people write it, e.g. `n: int`."""
        kind = getattr(self.annotation, "__name__", None)
        shown = str(self.annotation).replace("typing.", "")
        text = f"{self.name}: {kind if isinstance(self.annotation, type) and '[' not in shown else shown}"
        return text if self.required else f"{text} = {self.default!r}"


@dataclass(frozen=True, slots=True)
class Verifier:
    """A program that decides a requirement.

    Attributes:
        id: `family:name`.
        summary: One line: what it demands.
        check: `(prompt, response, **arguments) -> bool`; a verdict for any response.
        parameters: The requirement's arguments, in order.
        example: A passing and a failing response.
        requires: Packages outside the standard library that it imports when it runs.
        loose: Whether dropping first and last lines and asterisks is worth trying; not for code.
        executes: It runs code in processes of their own: slow, and worth doing side by side.
        repairs: The official id whose known fault it is without (see `evals.repaired`), or "".
    """

    id: str
    summary: str
    check: Callable[..., bool]
    parameters: tuple[Parameter, ...]
    example: Example
    requires: tuple[str, ...] = ()
    loose: bool = True
    executes: bool = False
    repairs: str = ""

    def arguments(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Check a requirement's arguments; nulls are dropped (IFEval pads with them), 0 and '' are kept.

        Raises:
            VerifierError: An argument is unknown, missing or of the wrong kind.
        """
        given = {name: value for name, value in kwargs.items() if value is not None}
        known = {parameter.name: parameter for parameter in self.parameters}
        takes = ", ".join(p.describe() for p in self.parameters) or "no arguments"
        for name in given:
            if name not in known:
                raise VerifierError(
                    f"unknown argument {name!r}", where=f"requirement {self.id}", hint=f"takes {takes}"
                )
        bound: dict[str, Any] = {}
        for name, parameter in known.items():
            if name in given:
                try:
                    bound[name] = coerce(given[name], parameter.annotation)
                except ValueError as error:
                    what = f"argument {name}={given[name]!r}: {error}"
                    raise VerifierError(what, where=f"requirement {self.id}", hint=f"takes {takes}") from None
            elif parameter.required:
                raise VerifierError(
                    f"argument {name!r} is missing", where=f"requirement {self.id}", hint=f"takes {takes}"
                )
            else:
                bound[name] = parameter.default
        return bound


def coerce(value: Any, annotation: Any) -> Any:
    """Return a value as the annotation wants it, or raise ValueError saying what was expected."""
    origin = get_origin(annotation)
    if origin is Literal:
        if value not in get_args(annotation):
            raise ValueError(f"expected one of {list(get_args(annotation))}")
        return value
    if origin in (Union, types.UnionType):
        for choice in get_args(annotation):
            try:
                return coerce(value, choice)
            except ValueError:
                continue
        raise ValueError(f"expected {annotation}")
    if origin is list:
        if not isinstance(value, list | tuple) or not value:
            raise ValueError("expected a list that is not empty")
        return [coerce(part, get_args(annotation)[0]) for part in value]
    if annotation is int:
        if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
            raise ValueError("expected a whole number")
        if value < 0:
            raise ValueError("expected 0 or more")
        return int(value)
    if annotation is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, annotation) or (isinstance(value, bool) and annotation is not bool):
        raise ValueError(f"expected {annotation.__name__}")
    return value


class Listing(Mapping[str, Verifier]):
    """Verifiers by id, in alphabetical order. An id outside the folder is a KeyError and imports nothing."""

    def __getitem__(self, key: str) -> Verifier:
        """Return a verifier, importing its file."""
        if key not in _ids():
            raise KeyError(key)
        return _load(key)

    def __iter__(self) -> Iterator[str]:
        return iter(_ids())

    def __len__(self) -> int:
        return len(_ids())

    def __contains__(self, key: object) -> bool:
        return key in _ids()


VERIFIERS: Mapping[str, Verifier] = Listing()


def nearest(requirement_id: str) -> str:
    """Return a hint that names the known ids nearest to an unknown one."""
    ids = list(_ids())
    names = {i.split(":", 1)[1]: i for i in ids}
    near = difflib.get_close_matches(requirement_id, ids, n=2, cutoff=0.5)
    near += [
        names[n]
        for n in difflib.get_close_matches(requirement_id.rsplit(":", maxsplit=1)[-1], names, n=1, cutoff=0.6)
    ]
    near = list(dict.fromkeys(near))
    return f"nearest: {', '.join(near[:2])}" if near else f"known: {', '.join(ids)}"


@functools.cache
def _ids() -> dict[str, str]:
    root = str(Path(__file__).parent)
    found = {}
    for family in pkgutil.iter_modules([root]):
        if family.ispkg:
            for module in pkgutil.iter_modules([f"{root}/{family.name}"]):
                key = f"{family.name}:{module.name}"
                found[_OFFICIAL.get(key, key)] = f"{PACKAGE}.{family.name}.{module.name}"
    return dict(sorted(found.items()))


@functools.cache
def _load(key: str) -> Verifier:
    module = importlib.import_module(_ids()[key])
    hints = get_type_hints(module.check)
    keywords = [p for p in inspect.signature(module.check).parameters.values() if p.kind is p.KEYWORD_ONLY]
    return Verifier(
        id=key,
        summary=(module.__doc__ or "").strip().splitlines()[0],
        check=module.check,
        parameters=tuple(Parameter(p.name, hints[p.name], p.default) for p in keywords),
        example=module.EXAMPLE,
        requires=tuple(getattr(module, "REQUIRES", ())),
        loose=bool(getattr(module, "LOOSE", True)),
        executes=bool(getattr(module, "EXECUTES", False)),
        repairs=str(getattr(module, "REPAIRS", "")),
    )
