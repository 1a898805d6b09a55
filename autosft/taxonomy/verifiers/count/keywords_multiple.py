"""Five keywords occur once, twice, three, five and seven times, in any case, also inside other words.

Source: IFBench (arXiv:2507.02833); decided by the package if_verifiable.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.library import decide

EXAMPLE = Example(
    "a b b c c c d d d d d e e e e e e e",
    "a b c d e",
    {"keyword1": "a", "keyword2": "b", "keyword3": "c", "keyword4": "d", "keyword5": "e"},
)
REQUIRES = ("if_verifiable",)


def check(
    prompt: str, response: str, *, keyword1: str, keyword2: str, keyword3: str, keyword4: str, keyword5: str
) -> bool:
    """Return whether each keyword has its count."""
    return decide(
        "count:keywords_multiple",
        response,
        keyword1=keyword1,
        keyword2=keyword2,
        keyword3=keyword3,
        keyword4=keyword4,
        keyword5=keyword5,
    )
