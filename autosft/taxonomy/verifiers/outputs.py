"""What reference code returns, computed once, and whether another value agrees with it."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import orjson

from autosft.artifacts import write_atomic
from autosft.identity import fingerprint
from autosft.taxonomy.sandbox import Call, Limits, Reply, answer_calls, decode, encode

Comparison = Literal["equal", "set", "not_none"]
FLOAT_ATOL, RTOL = 1e-6, 1e-7
VERSION = 2
#: References are trusted to be slow for a reason.
_LIMITS = Limits(cpu_s=60)
_KEPT_BYTES = 32 << 20


def cache_folder() -> Path:
    """Return where computed outputs are kept: `$AUTOSFT_CACHE`, else `autosft` in the user's cache folder."""
    given = os.environ.get("AUTOSFT_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(given) if given else Path(base) / "autosft"


def expected_replies(reference: str, calls: Sequence[Call]) -> list[Reply]:
    """Return what reference code answers, from the cache where it was asked before.

    The cache is named by code and calls, so it can be shared and deleted at will. A call that the reference
    itself cannot answer is not ok; nothing agrees with it.
    """
    asked = [[call.name, [encode(part) for part in call.args]] for call in calls]
    return _expected(reference, json.dumps(asked))


@functools.lru_cache(maxsize=512)
def _expected(reference: str, asked: str) -> list[Reply]:
    key = fingerprint(["expected", VERSION, reference, asked])
    path = cache_folder() / "expected" / key[:2] / f"{key}.json"
    try:
        stored = orjson.loads(path.read_bytes())
        return [Reply(ok, decode(value) if ok else None) for ok, value in stored]
    except (OSError, ValueError, TypeError):
        pass
    calls = [Call(name, tuple(decode(part) for part in args)) for name, args in json.loads(asked)]
    replies = answer_calls(reference, calls, _LIMITS)
    content = json.dumps(
        [[reply.ok, encode(reply.value) if reply.ok else None] for reply in replies]
    ).encode()
    if len(content) <= _KEPT_BYTES:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, content)
        except OSError:
            # A cache that cannot be written costs time, nothing else.
            pass
    return replies


def is_constant(replies: Sequence[Reply]) -> bool:
    """Return whether two or more calls all came to the same value."""
    shown = {repr((reply.ok, type(reply.value), reply.value)) for reply in replies}
    return len(replies) > 1 and len(shown) == 1


def agree(found: Any, wanted: Any, atol: float = 0.0, compare: Comparison = "equal") -> bool:
    """Return whether a returned value counts as the wanted one; both are plain values."""
    if compare == "not_none":
        return _was_found(found) == _was_found(wanted)
    try:
        if compare == "set":
            return set(found) == set(wanted)
        if found == wanted:
            return True
    except (TypeError, RecursionError):
        return False
    if atol == 0 and _floats(wanted):
        atol = FLOAT_ATOL
    return atol != 0 and type(found) is type(wanted) and _close(found, wanted, atol)


def _was_found(value: Any) -> bool:
    """A truth value as it is, a match of a pattern as true, None as false."""
    return value if isinstance(value, bool) else value is not None


def _floats(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(part, float) for part in value)
    return isinstance(value, float)


def _close(found: Any, wanted: Any, atol: float) -> bool:
    if isinstance(wanted, list | tuple):
        return (
            isinstance(found, list | tuple)
            and len(found) == len(wanted)
            and all(_close(a, b, atol) for a, b in zip(found, wanted, strict=True))
        )
    try:
        return bool(found == wanted or abs(found - wanted) <= atol + RTOL * abs(wanted))
    except (TypeError, OverflowError):
        return False
