"""Four questions of five options each, labelled 'Question', each longer than the one before.

Source: IFBench (arXiv:2507.02833); decided by the package if_verifiable.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.library import decide

OPTIONS = "A) One\nB) Two\nC) Three\nD) Four\nE) Five"
EXAMPLE = Example(
    "\n".join(f"Question {n}: Who painted it{' and sold it' * n}?\n{OPTIONS}" for n in range(1, 5)),
    f"Question 1: Who painted it?\n{OPTIONS}",
)
REQUIRES = ("if_verifiable",)


def check(prompt: str, response: str) -> bool:
    """Return whether there are four such questions and nothing before them."""
    return decide("custom:mcq_count_length", response)
