"""The response holds one of 'My answer is yes.', 'My answer is no.', 'My answer is maybe.'."""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example

EXAMPLE = Example("My answer is yes.", "Yes, it is.", prompt="Is the fox red?")
OPTIONS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")


def check(prompt: str, response: str) -> bool:
    """Return whether an option occurs in the response."""
    return any(option in response for option in OPTIONS)
