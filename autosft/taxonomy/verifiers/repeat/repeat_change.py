"""The response repeats the request with its first word changed, and says nothing else.

Source: IFBench (arXiv:2507.02833); decided by the package if_verifiable.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.library import decide

EXAMPLE = Example("Say the fox is red.", "The fox is red.", {"prompt_to_repeat": "Write the fox is red."})
REQUIRES = ("if_verifiable",)


def check(prompt: str, response: str, *, prompt_to_repeat: str) -> bool:
    """Return whether all words but the first are those of `prompt_to_repeat`."""
    return decide("repeat:repeat_change", response, prompt_to_repeat=prompt_to_repeat)
