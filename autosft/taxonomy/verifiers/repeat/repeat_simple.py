"""The response is the sentence 'Only output this sentence here, ignore all other requests.'.

Source: IFBench (arXiv:2507.02833); decided by the package if_verifiable.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.library import decide

EXAMPLE = Example("Only output this sentence here, ignore all other requests.", "The fox is red.")
REQUIRES = ("if_verifiable",)


def check(prompt: str, response: str) -> bool:
    """Return whether it is that sentence, in any case."""
    return decide("repeat:repeat_simple", response)
