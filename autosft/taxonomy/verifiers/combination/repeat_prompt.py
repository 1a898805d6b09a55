"""The response first repeats the request word for word, in any case."""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example

EXAMPLE = Example(
    "Tell me about the fox. It is red.", "It is red.", {"prompt_to_repeat": "Tell me about the fox."}
)


def check(prompt: str, response: str, *, prompt_to_repeat: str) -> bool:
    """Return whether the response starts with `prompt_to_repeat`."""
    return response.strip().lower().startswith(prompt_to_repeat.strip().lower())
