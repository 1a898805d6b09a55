"""Plain data -> typed settings, with errors that name the key, the value and what was expected."""

from __future__ import annotations

import difflib
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar

from autosft.config.schema import BOUNDS, Config
from autosft.errors import ConfigError

T = TypeVar("T")
_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


@cache
def field_types(cls: type) -> dict[str, Any]:
    """Return a dataclass's field names with their resolved types."""
    hints = typing.get_type_hints(cls)
    return {item.name: hints[item.name] for item in fields(cls)}


@cache
def known_keys() -> dict[str, Any]:
    """Return every settable key, dotted, with its type: `trainer.lr -> float`."""
    return dict(_leaves(Config, ""))


def _leaves(cls: type, prefix: str) -> Iterator[tuple[str, Any]]:
    for name, kind in field_types(cls).items():
        if is_dataclass(kind):
            yield from _leaves(typing.cast(type, kind), f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", kind


def nearest_key(key: str) -> str | None:
    """Return the settable key that looks most like `key`, also when only its last part was given."""
    keys = list(known_keys())
    last = key.rsplit(".", 1)[-1]
    exact = [known for known in keys if known.rsplit(".", 1)[-1] == last]
    if exact:
        return max(exact, key=lambda known: difflib.SequenceMatcher(None, known, key).ratio())
    close = difflib.get_close_matches(key, keys, n=1, cutoff=0.6)
    if close:
        return close[0]
    by_last = {known.rsplit(".", 1)[-1]: known for known in keys}
    close = difflib.get_close_matches(last, by_last, n=1, cutoff=0.7)
    return by_last[close[0]] if close else None


def unknown_key(key: str) -> ConfigError:
    """Build the error for a key that nothing reads."""
    near = nearest_key(key)
    if near is None:
        return ConfigError("unknown setting", where=key, hint=f"groups: {', '.join(field_types(Config))}")
    return ConfigError(
        "unknown setting", where=key, hint=f"nearest: {near}, {describe(known_keys()[near], near)}"
    )


def is_optional(kind: Any) -> bool:
    """Say whether a type allows null."""
    return isinstance(kind, types.UnionType) and type(None) in typing.get_args(kind)


def bare(kind: Any) -> Any:
    """Return a type without its `| None`."""
    return next(arg for arg in typing.get_args(kind) if arg is not type(None)) if is_optional(kind) else kind


def describe(kind: Any, key: str = "") -> str:
    """Say in words what a setting takes, e.g. `a whole number, at least 1, or null`."""
    inner = bare(kind)
    if typing.get_origin(inner) is Literal:
        words = "one of " + ", ".join(map(str, typing.get_args(inner)))
    elif typing.get_origin(inner) is tuple:
        words = "a list of " + {int: "whole numbers", str: "names"}[typing.get_args(inner)[0]]
    elif is_dataclass(inner):
        words = "a group of settings"
    else:
        words = _NAMES[inner]
    words += f", {BOUNDS[key]}" if key in BOUNDS else ""
    return f"{words}, or null" if is_optional(kind) else words


def read_settings(cls: type[T], data: Any, prefix: str = "") -> T:
    """Turn plain nested data into a dataclass of settings, strictly.

    Args:
        cls: The dataclass; every field must be given, nothing else may be.
        data: Mapping of plain values.
        prefix: Dotted path of `data`, for messages; '' at the top.

    Raises:
        ConfigError: A key is unknown or missing, or a value does not fit; names the key and what it takes.
    """
    if not isinstance(data, Mapping):
        raise ConfigError(
            f"expected a group of settings, got {_shown(data)}", where=prefix.rstrip(".") or "settings"
        )
    wanted = field_types(typing.cast(type, cls))
    for key in data:
        if key not in wanted:
            raise unknown_key(f"{prefix}{key}")
    missing = [name for name in wanted if name not in data]
    if missing:
        raise ConfigError(
            "setting is missing", where=f"{prefix}{missing[0]}", hint="give it a value, or null"
        )
    return cls(**{name: _read(kind, data[name], f"{prefix}{name}") for name, kind in wanted.items()})


def _read(kind: Any, value: Any, key: str) -> Any:
    if is_dataclass(kind):
        return read_settings(typing.cast(type, kind), value, f"{key}.")
    if value is None and is_optional(kind):
        return None
    inner = bare(kind)
    if typing.get_origin(inner) is tuple:
        return _read_list(typing.get_args(inner)[0], value, key, kind)
    return _read_scalar(inner, value, key, kind)


def _read_list(item_type: Any, value: Any, key: str, kind: Any) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise _misfit(key, value, kind)
    items = tuple(_read_scalar(item_type, item, key, kind) for item in value)
    twice = next((item for item in items if items.count(item) > 1), None)
    if twice is not None:
        raise ConfigError(f"{twice!r} is listed twice", where=key, hint="list each value once")
    return items


def _read_scalar(inner: Any, value: Any, key: str, kind: Any) -> Any:
    if typing.get_origin(inner) is Literal:
        if value in typing.get_args(inner) and not isinstance(value, bool):
            return value
        raise _misfit(key, value, kind)
    if inner is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    # bool is a subclass of int: `rounds=true` must not count as 1.
    if not isinstance(value, inner) or (isinstance(value, bool) and inner is not bool):
        raise _misfit(key, value, kind)
    if inner is str and (not value.strip() or any(ord(char) < 32 for char in value)):
        raise _misfit(key, value, kind)
    if key in BOUNDS and not BOUNDS[key].allows(value):
        raise _misfit(key, value, kind)
    return value


def _misfit(key: str, value: Any, kind: Any) -> ConfigError:
    return ConfigError(f"cannot be {_shown(value)}", where=key, hint=f"expected {describe(kind, key)}")


def _shown(value: Any) -> str:
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."
