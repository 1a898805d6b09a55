"""The final number of the response equals the right answer."""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.final_answer import final_number, parse_number

EXAMPLE = Example("3 boxes of 4 make 12.", "12 boxes of 4 make 48.", {"answer": 12})


def check(prompt: str, response: str, *, answer: int | float | str, tolerance: float = 0.0) -> bool:
    """Return whether the final number is within `tolerance` (absolute) of `answer`.

    Raises:
        VerifierError: `answer` is not a number.
    """
    wanted, found = parse_number(answer), final_number(response)
    return found is not None and abs(found - wanted) <= parse_number(tolerance)
