"""A character occurs fewer than or at least N times, in any case.

Source: IFEval. Where an older version of its program drew a random letter for '#' and '!', the character
itself is counted.
"""

from __future__ import annotations

from collections import Counter

from autosft.errors import VerifierError
from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.relation import Relation, holds

EXAMPLE = Example(
    "Three trees.", "Two oaks.", {"letter": "e", "let_frequency": 4, "let_relation": "at least"}
)


def check(prompt: str, response: str, *, letter: str, let_frequency: int, let_relation: Relation) -> bool:
    """Return whether the number of occurrences stands in the relation to `let_frequency`.

    Raises:
        VerifierError: `letter` is not one character.
    """
    if len(letter) != 1:
        raise VerifierError(
            f"letter={letter!r} must be one character", where="requirement keywords:letter_frequency"
        )
    found = Counter(response.lower())[letter.strip().lower()]
    return holds(found, let_relation, let_frequency)
