"""Compositions of requirements: all, any, not, count.

A composition is itself a requirement, so rows, evaluation items and leaves carry it like any other:

    Requirement("compose:any", {"of": [{"id": "lab:lowercase"}, {"id": "lab:uppercase"}]})
    Requirement("compose:not", {"of": [{"id": "keywords:existence", "kwargs": {"keywords": ["fox"]}}]})
    Requirement("compose:count", {"of": [...], "at_least": 2, "at_most": 3})

It is decided on one text as a whole: loosely where one of the eight loose variants meets the composition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from autosft.errors import VerifierError
from autosft.taxonomy.verifiers.listing import coerce
from autosft.taxonomy.verifiers.verdict import Predicate, predicate
from autosft.types import Requirement

Operator = Literal["all", "any", "not", "count"]
COMPOSITIONS: dict[str, Operator] = {
    "compose:all": "all",
    "compose:any": "any",
    "compose:not": "not",
    "compose:count": "count",
}
MAX_DEPTH = 8


def compose(operator: Operator, parts: Sequence[Requirement], **bounds: int) -> Requirement:
    """Return the requirement that combines `parts`.

    Args:
        operator: `all`, `any`, `not` (one part), or `count` (with `at_least` and/or `at_most` in `bounds`).
        parts: One or more requirements, compositions among them.
        **bounds: For `count` only.

    Raises:
        VerifierError: The parts or bounds do not fit the operator.
    """
    kwargs = {"of": [{"id": part.id, "kwargs": dict(part.kwargs)} for part in parts], **bounds}
    composition(f"compose:{operator}", kwargs)
    return Requirement(f"compose:{operator}", kwargs)


def parts_of(requirement_id: str, kwargs: Mapping[str, Any]) -> tuple[Requirement, ...]:
    """Return the parts of a composition, in order.

    Raises:
        VerifierError: The arguments are not those of a composition.
    """
    listed = kwargs.get("of")
    if not isinstance(listed, list | tuple) or not listed:
        raise VerifierError(
            "'of' must list one or more requirements",
            where=f"requirement {requirement_id}",
            hint='{"of": [{"id": "...", "kwargs": {...}}]}',
        )
    parts = []
    for part in listed:
        given = part.get("kwargs") if isinstance(part, Mapping) else None
        if (
            not isinstance(part, Mapping)
            or not isinstance(part.get("id"), str)
            or set(part) - {"id", "kwargs"}
        ):
            raise VerifierError(
                f"not a requirement: {part!r}", where=f"requirement {requirement_id}", hint="id, kwargs"
            )
        if given is not None and not isinstance(given, Mapping):
            raise VerifierError(f"kwargs must be an object: {given!r}", where=f"requirement {requirement_id}")
        parts.append(Requirement(part["id"], dict(given or {})))
    return tuple(parts)


def verifier_ids(requirement: Requirement) -> Iterator[str]:
    """Yield the verifier ids a requirement uses, those inside compositions too."""
    if requirement.id in COMPOSITIONS:
        for part in parts_of(requirement.id, requirement.kwargs):
            yield from verifier_ids(part)
    else:
        yield requirement.id


def composition(requirement_id: str, kwargs: Mapping[str, Any], depth: int = 1) -> Predicate:
    """Return the function that decides a composition on one text, every part's arguments checked once.

    Raises:
        VerifierError: The operator is unknown, or parts or bounds do not fit it, or the nesting is too deep.
    """
    where = f"requirement {requirement_id}"
    operator = COMPOSITIONS.get(requirement_id)
    if operator is None:
        raise VerifierError(
            f"unknown composition {requirement_id!r}", hint=f"known: {', '.join(COMPOSITIONS)}"
        )
    if depth > MAX_DEPTH:
        raise VerifierError(f"compositions are nested deeper than {MAX_DEPTH}", where=where)
    parts = [
        composition(part.id, part.kwargs, depth + 1)
        if part.id.startswith("compose:")
        else predicate(part.id, part.kwargs)
        for part in parts_of(requirement_id, kwargs)
    ]
    low, high = _bounds(
        operator, len(parts), {k: v for k, v in kwargs.items() if k != "of" and v is not None}, where
    )

    def passes(prompt: str, response: str) -> bool:
        return low <= sum(1 for part in parts if part(prompt, response)) <= high

    return passes


def _bounds(operator: Operator, n_parts: int, given: dict[str, Any], where: str) -> tuple[int, int]:
    fixed = {"all": (n_parts, n_parts), "any": (1, n_parts), "not": (0, 0)}
    allowed = {"at_least", "at_most"} if operator == "count" else set()
    if set(given) - allowed:
        raise VerifierError(
            f"unknown argument {min(set(given) - allowed)!r}", where=where, hint=f"takes of {allowed or ''}"
        )
    if operator == "not" and n_parts != 1:
        raise VerifierError(f"takes one part, {n_parts} given", where=where, hint="put compose:any inside it")
    if operator != "count":
        return fixed[operator]
    if not given:
        raise VerifierError("needs at_least or at_most", where=where)
    try:
        low, high = coerce(given.get("at_least", 0), int), coerce(given.get("at_most", n_parts), int)
    except ValueError as error:
        raise VerifierError(f"bounds {given}: {error}", where=where) from None
    if not (low <= high and low <= n_parts):
        raise VerifierError(f"no number of {n_parts} parts is at least {low} and at most {high}", where=where)
    return low, high
