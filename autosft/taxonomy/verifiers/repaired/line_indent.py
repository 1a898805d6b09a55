"""Every line is indented deeper than the one before, and there are several.

Repairs format:line_indent: a single line passes there.
"""

from __future__ import annotations

import itertools

from autosft.taxonomy.verifiers.example import Example

EXAMPLE = Example("red\n  small\n    quick", "red")
REPAIRS = "format:line_indent"
REQUIRES = ()


def check(prompt: str, response: str) -> bool:
    """Return whether the indentation grows; blank lines do not count, a tab is one column."""
    lines = [line for line in response.split("\n") if line.strip()]
    columns = [len(line) - len(line.lstrip(" \t")) for line in lines]
    return len(columns) > 1 and all(b > a for a, b in itertools.pairwise(columns))
