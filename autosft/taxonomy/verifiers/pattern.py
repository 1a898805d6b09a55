"""Keywords as IFEval reads them: as regular expressions, unless that would be unsafe."""

from __future__ import annotations

import functools
import re

MAX_OPTIONAL = 3


@functools.lru_cache(maxsize=4096)
def keyword_pattern(keyword: str) -> str:
    """Return the pattern of a keyword.

    IFEval's program uses a keyword as a pattern without escaping it, which is kept ("a.b" finds "axb"). A
    keyword that is no valid pattern ("c++") or whose repetitions could take exponential time (rows and
    arguments are data from outside) is searched for literally.
    """
    repeats = len(re.findall(r"[*+{]", keyword))
    if repeats > 1 or keyword.count("?") > MAX_OPTIONAL or re.search(r"\)[*+{?]", keyword):
        return re.escape(keyword)
    try:
        re.compile(keyword)
    except (re.error, OverflowError, RecursionError):
        return re.escape(keyword)
    return keyword
