"""Strict and loose verdicts.

Source: "Instruction-Following Evaluation for Large Language Models" (arXiv:2311.07911), section 2.2, and the
evaluation program published with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from autosft.errors import VerifierError
from autosft.taxonomy.verifiers.listing import VERIFIERS, nearest
from autosft.types import Requirement

Predicate = Callable[[str, str], bool]


def check_requirement(
    requirement_id: str, kwargs: Mapping[str, Any], prompt: str, response: str
) -> tuple[bool, bool]:
    """Decide one requirement.

    Args:
        requirement_id: A verifier's id, or `compose:all|any|not|count` (see `taxonomy.compose`).
        kwargs: The requirement's arguments; nulls are ignored.
        prompt: Text of the user turn the response answers.
        response: Any string.

    Returns:
        (strict, loose). Strict: the response is not blank and passes. Loose: any of the eight variants of
        `loose_variants` is not blank and passes; strict implies loose.

    Raises:
        VerifierError: The id is unknown or the arguments do not fit; never because of the response.
    """
    passes = predicate(requirement_id, kwargs)
    if passes_strictly(passes, prompt, response):
        return True, True
    return False, has_loose(requirement_id, kwargs) and any(
        passes_strictly(passes, prompt, variant) for variant in dict.fromkeys(loose_variants(response)[1:])
    )


def verify(requirement: Requirement, prompt: str, response: str) -> bool:
    """Return the strict verdict on a requirement.

    Raises:
        VerifierError: As `check_requirement`.
    """
    return passes_strictly(predicate(requirement.id, requirement.kwargs), prompt, response)


def predicate(requirement_id: str, kwargs: Mapping[str, Any]) -> Predicate:
    """Return the function that decides a requirement on one text, its arguments checked once.

    Raises:
        VerifierError: The id is unknown or the arguments do not fit.
    """
    if requirement_id.startswith("compose:"):
        # Compositions need predicates of their parts, so the two modules know each other; this one stays
        # importable alone.
        from autosft.taxonomy.compose import composition

        return composition(requirement_id, kwargs)
    if requirement_id not in VERIFIERS:
        raise VerifierError(f"unknown requirement {requirement_id!r}", hint=nearest(requirement_id))
    verifier = VERIFIERS[requirement_id]
    arguments = verifier.arguments(kwargs)
    check = verifier.check
    return lambda prompt, response: bool(check(prompt, response, **arguments))


def has_loose(requirement_id: str, kwargs: Mapping[str, Any]) -> bool:
    """Return whether loose variants are worth trying; not for code, which is cut out of its text anyway."""
    return all(VERIFIERS[key].loose for key in _ids_in(requirement_id, kwargs))


def executes(requirement_id: str, kwargs: Mapping[str, Any]) -> bool:
    """Return whether deciding a requirement runs code in another process."""
    return any(VERIFIERS[key].executes for key in _ids_in(requirement_id, kwargs) if key in VERIFIERS)


def _ids_in(requirement_id: str, kwargs: Mapping[str, Any]) -> tuple[str, ...]:
    if requirement_id.startswith("compose:"):
        from autosft.taxonomy.compose import verifier_ids

        return tuple(verifier_ids(Requirement(requirement_id, kwargs)))
    return (requirement_id,)


def passes_strictly(passes: Predicate, prompt: str, response: str) -> bool:
    """Return whether a text is not blank and passes."""
    return bool(response.strip()) and passes(prompt, response)


def loose_variants(response: str) -> tuple[str, ...]:
    """Return the eight texts of the loose criterion; the first is the response itself.

    As it is; without its first line, its last line, both (what is left is stripped); each of the four also
    without asterisks.
    """
    lines = response.split("\n")
    cut = [response, *("\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1]))]
    return (*cut, *(text.replace("*", "") for text in cut))
