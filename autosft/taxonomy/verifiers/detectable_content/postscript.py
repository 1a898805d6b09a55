"""The response holds a postscript begun by a marker such as 'P.S.'."""

from __future__ import annotations

import re

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.pattern import keyword_pattern

EXAMPLE = Example("It is red.\nP.S. It is small.", "It is red and small.", {"postscript_marker": "P.S."})
KNOWN = {"P.P.S": r"p\.\s?p\.\s?s", "P.S.": r"p\.\s?s\."}


def check(prompt: str, response: str, *, postscript_marker: str) -> bool:
    """Return whether the marker occurs, in any case; the two known markers allow a space after a point."""
    marker = postscript_marker.strip()
    return re.search(KNOWN.get(marker) or keyword_pattern(marker.lower()), response.lower()) is not None
