"""One record of a user's file to one row: messages, conversations, Alpaca or prompt/response columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from autosft.errors import PoolError
from autosft.pool.rows import ROLES, clean_text, new_row, requirements_json
from autosft.types import Requirement, Row

_ROLE_NAMES = {
    "human": "user",
    "gpt": "assistant",
    "bot": "assistant",
    "model": "assistant",
    "chatgpt": "assistant",
    "developer": "system",
    "function": "tool",
    "observation": "tool",
    "ipython": "tool",
}
_ANSWERS = ("output", "response", "completion", "answer")


def row_of(record: Any, default_source: str) -> Row:
    """Read one record.

    Args:
        record: A mapping in one of the known shapes.
        default_source: Source of records that do not name one.

    Raises:
        PoolError: The record has no known shape, or its turns are unusable; says which.
    """
    if not isinstance(record, Mapping):
        raise PoolError(f"a {type(record).__name__}, not an object with columns")
    turns = _turns(record)
    if not any(role == "assistant" for role, _ in turns):
        raise PoolError("no assistant turn to learn from")
    source = record.get("source") or record.get("dataset") or default_source
    if not isinstance(source, str):
        raise PoolError(f"source is {type(source).__name__}, not text")
    leaf = record.get("leaf")
    return new_row(
        clean_text(source),
        turns,
        requirements=_requirements(record),
        leaf=leaf if isinstance(leaf, str) else None,
    )


def _turns(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    if record.get("messages") is not None:
        return _chat(record, "messages", "role", "content")
    if record.get("conversations") is not None:
        return _chat(record, "conversations", "from", "value")
    system = [("system", record["system"])] if record.get("system") else []
    answer = next((name for name in _ANSWERS if record.get(name) is not None), None)
    if answer is not None and record.get("instruction") is not None:
        extra = record.get("input") or ""
        prompt = (
            f"{_text(record['instruction'])}\n\n{_text(extra)}" if extra else _text(record["instruction"])
        )
        return [*system, ("user", prompt), ("assistant", _text(record[answer]))]
    if answer is not None and record.get("prompt") is not None:
        return [*system, ("user", _text(record["prompt"])), ("assistant", _text(record[answer]))]
    columns = ", ".join(sorted(map(str, record))[:8]) or "none"
    raise PoolError(
        f"no messages, conversations, instruction + output or prompt + response (columns: {columns})"
    )


def _chat(record: Mapping[str, Any], column: str, role_key: str, text_key: str) -> list[tuple[str, str]]:
    chat = record[column]
    if not isinstance(chat, Sequence) or isinstance(chat, str | bytes) or not chat:
        raise PoolError(f"{column} is not a list of turns")
    turns = []
    for number, turn in enumerate(chat, start=1):
        if not isinstance(turn, Mapping):
            raise PoolError(f"{column}, turn {number}: a {type(turn).__name__}, not an object")
        # Both spellings occur under both column names.
        keys = (
            (role_key, text_key)
            if role_key in turn
            else ("from", "value")
            if "from" in turn
            else ("role", "content")
        )
        role = turn.get(keys[0])
        role = _ROLE_NAMES.get(role, role) if isinstance(role, str) else role
        if role not in ROLES:
            raise PoolError(f"{column}, turn {number}: unknown role {str(role)[:40]!r}")
        if turn.get("tool_calls"):
            raise PoolError(f"{column}, turn {number}: tool calls are not supported")
        try:
            turns.append((str(role), _text(turn.get(keys[1]))))
        except PoolError as error:
            raise PoolError(f"{column}, turn {number}: {error.what}") from None
    if column == "conversations" and isinstance(record.get("system"), str) and turns[0][0] != "system":
        turns.insert(0, ("system", record["system"])) if record["system"] else None
    return turns


def _text(value: Any) -> str:
    """Return content as text; OpenAI's list of text parts is joined."""
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        parts = [
            part.get("text") if isinstance(part, Mapping) and part.get("type") == "text" else None
            for part in value
        ]
        if parts and all(isinstance(part, str) for part in parts):
            return "".join(str(part) for part in parts)
        raise PoolError("content holds parts that are not text")
    raise PoolError("no content" if value is None else f"content is {type(value).__name__}, not text")


def _requirements(record: Mapping[str, Any]) -> list[Requirement]:
    """Read `requirements` (a list, or its JSON), or IFEval's `instruction_id_list` with `kwargs`."""
    given = record.get("requirements")
    if isinstance(given, str):
        try:
            given = orjson.loads(given)
        except ValueError:
            raise PoolError("requirements are not JSON") from None
    if given is None and isinstance(record.get("instruction_id_list"), Sequence):
        ids, kwargs = record["instruction_id_list"], record.get("kwargs") or []
        given = [
            {"id": i, "kwargs": k}
            for i, k in zip(ids, [*kwargs, *[{}] * (len(ids) - len(kwargs))], strict=False)
        ]
    if not given:
        return []
    if not isinstance(given, Sequence):
        raise PoolError("requirements are not a list")
    requirements = []
    for item in given:
        if not isinstance(item, Mapping) or not isinstance(item.get("id"), str):
            raise PoolError("a requirement has no id")
        kwargs = item.get("kwargs") or {}
        if isinstance(kwargs, str):
            try:
                kwargs = orjson.loads(kwargs)
            except ValueError:
                raise PoolError("a requirement's kwargs are not JSON") from None
        if not isinstance(kwargs, Mapping):
            raise PoolError("a requirement's kwargs are not an object")
        requirement = Requirement(item["id"], {str(k): v for k, v in kwargs.items() if v is not None})
        try:
            requirements_json([requirement])
        except TypeError as error:
            raise PoolError(f"a requirement's kwargs cannot be stored: {error}") from None
        requirements.append(requirement)
    return requirements
