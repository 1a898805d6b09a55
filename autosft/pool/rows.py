"""Making rows: content ids, clean text, derived rows, plain data in and out."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from autosft.errors import PoolError
from autosft.identity import canonical_json
from autosft.types import Message, Method, Requirement, Row

ROLES = ("system", "user", "assistant", "tool")
ID_HEX = 16
_SURROGATES = re.compile("[\ud800-\udfff]")


def clean_text(text: str) -> str:
    """Replace lone surrogates by U+FFFD: they are no characters, and no file or tokenizer can hold them."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def content_id(messages: Sequence[Message]) -> str:
    """Return the id of a conversation: 16 hex digits of the SHA-256 over its roles and texts."""
    data = orjson.dumps([[m.role, m.content] for m in messages])
    return hashlib.sha256(data).hexdigest()[:ID_HEX]


def base_id(row_id: str) -> str:
    """Return a row id without its copy number: the content id."""
    return row_id.split(".", 1)[0]


def number_ids(wanted: Iterable[tuple[str, str]], taken: Iterable[str] = ()) -> list[str]:
    """Give every row a unique id: its own if that is free, else its content id, else `.2`, `.3`, ...

    Args:
        wanted: (content id, present id) of each row, in order; a present id of other content is ignored.
        taken: Ids that are in use already.
    """
    used = set(taken)
    next_copy: dict[str, int] = {}
    ids = []
    for content, present in wanted:
        chosen = present if base_id(present) == content and present not in used else content
        while chosen in used:
            copy = next_copy.get(content, 2)
            next_copy[content] = copy + 1
            chosen = f"{content}.{copy}"
        used.add(chosen)
        ids.append(chosen)
    return ids


def new_row(
    source: str,
    messages: Sequence[Message | tuple[str, str]],
    *,
    requirements: Sequence[Requirement] = (),
    leaf: str | None = None,
    made_by: str | None = None,
    verdicts: Mapping[str, bool] | None = None,
    weight: float = 1.0,
) -> Row:
    """Return a row of the given turns, with its content id.

    Args:
        source: Provenance label.
        messages: Turns, as `Message` or (role, content).
        requirements: What the response must satisfy.
        leaf: Taxonomy leaf.
        made_by: Kind of the action that wrote it; the row then counts as `new`.
        verdicts: Verdicts that admitted a written row.
        weight: Expected copies relative to 1.

    Raises:
        PoolError: No turns, an unknown role, or text that is not text.
    """
    turns = tuple(_message(m) for m in messages)
    if not turns:
        raise PoolError("a row has no messages", where=f"source {source!r}")
    method: Method | None = "new" if made_by else None
    return Row(
        content_id(turns),
        source,
        turns,
        tuple(requirements),
        leaf,
        None,
        made_by,
        method,
        dict(verdicts or {}),
        weight,
    )


def made_row(
    parent: Row,
    *,
    response: str | None = None,
    messages: Sequence[Message] | None = None,
    made_by: str,
    method: Method,
    verdicts: Mapping[str, bool],
) -> Row:
    """Return a row made from another one; source, requirements, leaf, weight and place are inherited.

    Args:
        parent: The row it was made from.
        response: New text of the last assistant turn; or give
        messages: all turns anew.
        made_by: Kind of the action.
        method: `edit` (minimal change) or `replace` (new response).
        verdicts: Verdicts that admit the new row, requirement id -> passed.

    Raises:
        PoolError: Neither or both of `response` and `messages`, or a parent without an assistant turn.
    """
    if (response is None) == (messages is None):
        raise PoolError("a made row takes either a response or messages", where=f"row {parent.id}")
    if response is not None:
        messages = with_response(parent.messages, response, where=f"row {parent.id}")
    turns = tuple(_message(m) for m in messages or ())
    return replace(
        parent,
        id=content_id(turns),
        messages=turns,
        parent=parent.id,
        made_by=made_by,
        method=method,
        verdicts=dict(verdicts),
    )


def with_response(messages: Sequence[Message], response: str, *, where: str = "") -> tuple[Message, ...]:
    """Return the turns with the last assistant turn's text replaced.

    Raises:
        PoolError: There is no assistant turn.
    """
    for index in reversed(range(len(messages))):
        if messages[index].role == "assistant":
            return (*messages[:index], Message("assistant", response), *messages[index + 1 :])
    raise PoolError("the row has no assistant turn to replace", where=where)


def with_prompt(messages: Sequence[Message], prompt: str, *, where: str = "") -> tuple[Message, ...]:
    """Return the turns with the last user turn's text replaced.

    Raises:
        PoolError: There is no user turn.
    """
    for index in reversed(range(len(messages))):
        if messages[index].role == "user":
            return (*messages[:index], Message("user", prompt), *messages[index + 1 :])
    raise PoolError("the row has no user turn to replace", where=where)


def requirements_json(requirements: Sequence[Requirement]) -> str:
    """Encode requirements as canonical JSON text."""
    if not requirements:
        return "[]"
    return canonical_json([{"id": r.id, "kwargs": dict(r.kwargs)} for r in requirements]).decode()


def read_requirements(text: str) -> tuple[Requirement, ...]:
    """Read what `requirements_json` wrote."""
    if text == "[]":
        return ()
    return tuple(Requirement(r["id"], r.get("kwargs") or {}) for r in orjson.loads(text))


def verdicts_json(verdicts: Mapping[str, bool]) -> str:
    """Encode verdicts as canonical JSON text."""
    return canonical_json(dict(verdicts)).decode() if verdicts else "{}"


def _message(turn: Message | tuple[str, str]) -> Message:
    role, content = (turn.role, turn.content) if isinstance(turn, Message) else turn
    if role not in ROLES:
        raise PoolError(f"unknown role {role!r}", hint=f"roles are {', '.join(ROLES)}")
    if not isinstance(content, str):
        raise PoolError(f"content of a {role} turn is {type(content).__name__}, not text")
    return Message(role, clean_text(content))


def as_data(row: Row) -> dict[str, Any]:
    """Return a row as plain JSON data, for people and agents to look at."""
    return {
        "id": row.id,
        "source": row.source,
        "messages": [{"role": m.role, "content": m.content} for m in row.messages],
        "requirements": [{"id": r.id, "kwargs": dict(r.kwargs)} for r in row.requirements],
        "leaf": row.leaf,
        "parent": row.parent,
        "made_by": row.made_by,
        "method": row.method,
        "verdicts": dict(row.verdicts),
        "weight": row.weight,
        "order_key": row.order_key,
    }
