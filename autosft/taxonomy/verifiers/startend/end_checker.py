"""The response ends with an exact phrase (case, outer spaces and closing double quotes aside)."""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example

EXAMPLE = Example(
    "It is red. Hope that helps!", "Hope that helps! It is red.", {"end_phrase": "Hope that helps!"}
)


def check(prompt: str, response: str, *, end_phrase: str) -> bool:
    """Return whether the response ends with `end_phrase`."""
    return response.strip().strip('"').lower().endswith(end_phrase.strip().lower())
