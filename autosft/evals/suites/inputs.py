"""Arguments of MBPP+ calls, whose tuples, sets and complex numbers JSON does not have.

The list of tasks is EvalPlus' (release v0.2.0 of MBPP+, and version 0.3.1 of its program); how they are
put back is by their place in a call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_EACH_ARGUMENT = frozenset(
    {
        2,
        116,
        132,
        143,
        222,
        261,
        273,
        394,
        399,
        421,
        424,
        429,
        470,
        560,
        579,
        596,
        616,
        630,
        726,
        740,
        744,
        809,
    }
)
_ITEMS_OF_EACH = frozenset({63, 64, 70, 94, 120, 237, 272, 299, 400, 409, 417, 438, 473, 614, 780})
_ITEMS_OF_FIRST = frozenset({75, 413, 444, 753})
_FIRST = frozenset({250, 307, 405, 446, 617, 720, 763, 808})
_SECOND = frozenset({106, 750})
_BOTH_LEVELS = frozenset({259, 401, 445})
_ALL_LEVELS = frozenset({580, 615, 791})


def with_tuples(task: int, call: list[Any]) -> list[Any]:
    """Return a call's arguments as the task's functions take them."""
    if task in _EACH_ARGUMENT:
        return [tuple(part) for part in call]
    if task in _ITEMS_OF_EACH:
        return [[tuple(item) for item in part] for part in call]
    if task in _ITEMS_OF_FIRST:
        return [[tuple(item) for item in call[0]], *call[1:]]
    if task in _FIRST:
        return [tuple(call[0]), *call[1:]]
    if task in _SECOND:
        return [call[0], tuple(call[1])]
    if task in _BOTH_LEVELS:
        return [tuple(tuple(item) for item in part) for part in call]
    if task in _ALL_LEVELS:
        return [_deep(part) for part in call]
    return _SINGLE.get(task, list)(call)


def argument_kind(calls: list[list[Any]]) -> str:
    """Return what a task's functions work on, by their first call: the leaf of a task.

    One of `on_texts`, `on_mappings`, `on_nested`, `on_sequences`, `on_numbers`.
    """
    parts = calls[0] if calls else []
    if any(isinstance(part, dict) for part in parts):
        return "on_mappings"
    groups = [part for part in parts if isinstance(part, list | tuple | set)]
    if any(isinstance(item, list | tuple | set | dict) for group in groups for item in group):
        return "on_nested"
    if groups:
        return "on_sequences"
    return "on_texts" if any(isinstance(part, str) for part in parts) else "on_numbers"


def _deep(value: Any) -> Any:
    return tuple(_deep(item) for item in value) if isinstance(value, list) else value


_SINGLE: dict[int, Callable[[list[Any]], list[Any]]] = {
    # An empty set was written as an empty list, an empty mapping too: the release's own reading.
    115: lambda call: [[set(item) if isinstance(item, list) and item else {} for item in call[0]]],
    124: lambda call: [float(call[0]), complex(call[1])],
    252: lambda call: [complex(call[0])],
    278: lambda call: [tuple(tuple(item) if isinstance(item, list) else item for item in call[0])],
    722: lambda call: [{key: tuple(value) for key, value in call[0].items()}, *call[1:]],
}
