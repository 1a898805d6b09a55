"""The final choice of the response is the right letter."""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.final_answer import final_choice

EXAMPLE = Example("It is red, so the answer is (B).", "B is wrong. The answer is C.", {"answer": "B"})


def check(prompt: str, response: str, *, answer: str, letters: str = "ABCDE") -> bool:
    """Return whether the choice made last is `answer`, one of `letters`, in any case."""
    return final_choice(response, letters) == answer.strip().strip("().").upper()
