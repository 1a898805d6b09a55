"""The whole response is JSON, bare or in a Markdown code fence."""

from __future__ import annotations

import json

from autosft.taxonomy.verifiers.example import Example

EXAMPLE = Example('{"answer": "red"}', "The answer is red.")
OPENERS = ("```json", "```Json", "```JSON", "```")


def check(prompt: str, response: str) -> bool:
    """Return whether the response parses; JSON nested too deep to parse does not."""
    text = response.strip()
    for opener in OPENERS:
        text = text.removeprefix(opener)
    try:
        json.loads(text.removesuffix("```").strip())
    except (ValueError, RecursionError):
        return False
    return True
