"""The response has exactly N Markdown bullet points ('* ' or '- ')."""

from __future__ import annotations

import re

from autosft.taxonomy.verifiers.example import Example

EXAMPLE = Example("* red\n* small", "* red\n* small\n* quick", {"num_bullets": 2})

# IFEval's program lets a bullet's leading space run over earlier blank lines; the bullet it lands on is the
# same, and spaces within the line alone keep the search linear. Its '[^*]' may be the line's end, which is
# kept.
STAR = re.compile(r"^[^\S\n]*\*[^*].*$", re.MULTILINE)
DASH = re.compile(r"^[^\S\n]*-", re.MULTILINE)


def check(prompt: str, response: str, *, num_bullets: int) -> bool:
    """Return whether starred and dashed bullets together are `num_bullets`."""
    return len(STAR.findall(response)) + len(DASH.findall(response)) == num_bullets
