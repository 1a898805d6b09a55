"""The response has at least N sections, each begun by a marker and a number ('Section 1')."""

from __future__ import annotations

import re

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.pattern import keyword_pattern

EXAMPLE = Example(
    "Section 1\nIt is red.\nSection 2\nIt is small.",
    "Section 1\nIt is red and small.",
    {"section_spliter": "Section", "num_sections": 2},
)


def check(prompt: str, response: str, *, section_spliter: str, num_sections: int) -> bool:
    """Return whether the marker followed by digits occurs `num_sections` times or more."""
    marker = r"\s?" + keyword_pattern(section_spliter.strip()) + r"\s?\d+\s?"
    return len(re.split(marker, response)) - 1 >= num_sections
