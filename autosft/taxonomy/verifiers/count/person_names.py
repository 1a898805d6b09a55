"""The response names at least N different people of a list of fifty first names.

Source: IFBench (arXiv:2507.02833), its program as of August 2026.
"""

from __future__ import annotations

import re

from autosft.taxonomy.verifiers.example import Example

EXAMPLE = Example("Emma met Liam.", "Emma met a fox.", {"N": 2})
REQUIRES = ()
NAME = re.compile(
    r"\b(?:Emma|Liam|Sophia|Jackson|Olivia|Noah|Ava|Lucas|Isabella|Mason|Mia|Ethan|Charlotte|Alexander|Amelia"
    r"|Benjamin|Harper|Leo|Zoe|Daniel|Chloe|Samuel|Lily|Matthew|Grace|Owen|Abigail|Gabriel|Ella|Jacob|Scarlett"
    r"|Nathan|Victoria|Elijah|Layla|Nicholas|Audrey|David|Hannah|Christopher|Penelope|Thomas|Nora|Andrew|Aria"
    r"|Joseph|Claire|Ryan|Stella|Jonathan)\b"
)


def check(prompt: str, response: str, *, N: int) -> bool:
    """Return whether `N` different names occur as whole words, in this spelling."""
    return len(set(NAME.findall(response))) >= N
