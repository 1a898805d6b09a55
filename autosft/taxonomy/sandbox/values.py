"""Python values as JSON with their types, between processes that do not trust one another.

Only plain values come out of `decode`: an answer cannot send an object whose `==` always holds. Anything else
arrives as an `Opaque`. Standard library only: the confined side imports this file alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

MAX_DEPTH = 100
_PLAIN = (bool, int, str, type(None))


class Opaque:
    """Stands for a value of another type; equal to nothing, true where the value is."""

    def __init__(self, kind: str, truth: bool) -> None:
        self.kind, self.truth = kind, truth

    def __bool__(self) -> bool:
        return self.truth

    def __eq__(self, other: object) -> bool:
        return False

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"<{self.kind}>"


def encode(value: Any, depth: int = 0) -> Any:
    """Return JSON data for a value; exact types only, so that a subclass brings none of its own behaviour.

    Raises:
        ValueError: The value is nested deeper than `MAX_DEPTH`.
    """
    if depth > MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH}")
    kind = type(value)
    if kind in (bool, type(None)):
        return value
    if kind is str:
        # Half a surrogate pair is a legal Python character and no legal JSON.
        return value if value.isascii() or _encodable(value) else {"s": [ord(letter) for letter in value]}
    if kind is int:
        return value if abs(value) < 2**53 else {"i": hex(value)}
    if kind is float:
        return value if math.isfinite(value) else {"f": repr(value)}
    if kind is complex:
        return {"c": [encode(value.real), encode(value.imag)]}
    if kind is bytes:
        return {"b": value.hex()}
    if kind in (list, tuple, set, frozenset):
        return {kind.__name__: [encode(part, depth + 1) for part in value]}
    if isinstance(value, dict):
        pairs = dict.items(value)
        return {"dict": [[encode(key, depth + 1), encode(part, depth + 1)] for key, part in pairs]}
    plain = _plain_number(value)
    return encode(plain, depth) if plain is not None else {"o": [kind.__name__[:60], _truth(value)]}


def decode(data: Any) -> Any:
    """Return the value that `encode` was given.

    Raises:
        ValueError: The data is something else.
    """
    if isinstance(data, (*_PLAIN, float)):
        return data
    if not isinstance(data, Mapping) or len(data) != 1:
        raise ValueError("not an encoded value")
    tag, body = next(iter(data.items()))
    try:
        return _DECODERS[tag](body)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise ValueError(f"not an encoded value: {error!r}") from None


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _plain_number(value: Any) -> int | float | bool | None:
    """Return a number of a subclass (a NumPy scalar, an enumeration) as a plain one, or None."""
    item = getattr(value, "item", None)
    try:
        found = item() if callable(item) else None
    except Exception:
        return None
    return found if type(found) in (int, float, bool) else None


def _truth(value: Any) -> bool:
    try:
        return bool(value)
    except Exception:
        return True


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "s": lambda body: "".join(chr(code) for code in body),
    "i": lambda body: int(body, 16),
    "f": float,
    "c": lambda body: complex(decode(body[0]), decode(body[1])),
    "b": bytes.fromhex,
    "list": lambda body: [decode(part) for part in body],
    "tuple": lambda body: tuple(decode(part) for part in body),
    "set": lambda body: {decode(part) for part in body},
    "frozenset": lambda body: frozenset(decode(part) for part in body),
    "dict": lambda body: {decode(key): decode(part) for key, part in body},
    "o": lambda body: Opaque(str(body[0]), bool(body[1])),
}
