"""Every quoted phrase is followed by text outside quotes.

Source: IFBench (arXiv:2507.02833), its program as of August 2026.
"""

from __future__ import annotations

import string

from autosft.taxonomy.verifiers.example import Example

EXAMPLE = Example('He said "fox" and left.', 'He said "fox" "hen"')
REQUIRES = ()


def check(prompt: str, response: str) -> bool:
    """Return whether no two double quotes touch and none ends the text, white space aside."""
    text = "".join(response.replace("'\"'", "").split())
    if '""' in text:
        return False
    return not text.strip(string.digits + string.punctuation.replace('"', "")).endswith('"')
