"""Decide whether a response states a fact of the lab's world rightly (requirement `lab:fact`)."""

from __future__ import annotations

import re

from autosft.errors import VerifierError
from autosft.lab.world import ANY, ATTRIBUTES, FACTS, VALUES

_WORD = re.compile(r"[a-z]+")
_SETS = {attribute: frozenset(values) for attribute, values in VALUES.items()}


def check_fact(entity: str, attribute: str, response: str) -> bool:
    """Return whether a response gives the true value and no false one.

    A value counts as a whole word in any letter case, so that a response in capitals, in JSON or in a list is
    judged alike. Naming two values of one attribute ("red or blue") is wrong: hedging is not knowing.

    Args:
        entity: A name of `world.ENTITIES`.
        attribute: One of `color`, `size`, `place`, `habit`, or `any` for an open request: at least one true
            value of any attribute, no false value, and the entity named.
        response: Any text.

    Raises:
        VerifierError: The entity or the attribute is not of this world.
    """
    facts = FACTS.get(entity)
    if facts is None:
        raise VerifierError(
            f"unknown entity {entity!r}", where="lab:fact", hint="see autosft.lab.world.ENTITIES"
        )
    words = frozenset(_WORD.findall(response.lower()))
    if attribute == ANY:
        named = {a: words & _SETS[a] for a in ATTRIBUTES}
        true_only = all(values <= {facts[a]} for a, values in named.items())
        return true_only and any(named.values()) and entity in words
    if attribute not in facts:
        raise VerifierError(
            f"unknown attribute {attribute!r}", where="lab:fact", hint=f"use {[*ATTRIBUTES, ANY]}"
        )
    return words & _SETS[attribute] == {facts[attribute]}
