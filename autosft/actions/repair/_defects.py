"""Defects of text that a program can see and mend: one function a defect, from a text to the mended text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from autosft.types import Message

# Characters as one-byte code pages show them -> the byte. Where cp1252 has a hole, latin-1 fills it.
_BYTES = {
    (bytes([b]).decode("cp1252", "ignore") or bytes([b]).decode("latin-1")): b for b in range(0x80, 0x100)
} | {chr(b): b for b in range(0x80, 0x100)}
_TAIL = "[" + re.escape("".join(char for char, b in _BYTES.items() if b < 0xC0)) + "]"
_MOJIBAKE = re.compile(
    "|".join(
        f"[{re.escape(''.join(c for c, b in _BYTES.items() if low <= b < high))}]{_TAIL}{{{n}}}"
        for low, high, n in ((0xC2, 0xE0, 1), (0xE0, 0xF0, 2), (0xF0, 0xF5, 3))
    )
)
_CLOSING = frozenset("”’…»›—–“‘")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufeff\u202a-\u202e\u2066-\u2069]")
_FENCE = re.compile(r"^[ ]{0,3}(`{3,}|~{3,})[^`\n]*$", re.MULTILINE)
_SENTENCE_END = re.compile(r"[.!?。！？][\"'”’)\]]*(?=\s)")
_LISTED = re.compile(r"^\s*(?:[-*+>#|]|\d+[.)])\s*")


def undo_mojibake(text: str) -> str:
    """Decode UTF-8 that was read in a one-byte code page (`cafÃ©`, `donâ€™t`), even twice in a row."""
    for _ in range(2):
        mended = _MOJIBAKE.sub(_decoded, text)
        if mended == text:
            break
        text = mended
    return text


def _decoded(found: re.Match[str]) -> str:
    shown, around = found.group(), found.string
    before, after = around[max(0, found.start() - 1) : found.start()], around[found.end() : found.end() + 1]
    # `CAFÉ”` is a capital and a quotation mark, not a letter read wrongly.
    if len(shown) == 2 and shown[1] in _CLOSING and not before.islower() and not after.isalpha():
        return shown
    try:
        char = bytes(_BYTES[c] for c in shown).decode("utf-8")
    except UnicodeDecodeError:
        return shown
    # Two characters can be meant as they stand; they are mended only where a common letter or mark comes out.
    common = char <= "\u017f" or "\u0370" <= char <= "\u04ff"
    return char if common or len(shown) > 2 else shown


def drop_controls(text: str) -> str:
    """Remove control characters, byte order marks and direction overrides; line ends become newlines."""
    return _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def close_fence(text: str) -> str:
    """Close a code fence that is left open; one that opens at the very end, over nothing, is removed."""
    opened = ""
    start = 0
    for found in _FENCE.finditer(text):
        fence = found.group(1)
        if not opened:
            opened, start = fence, found.start()
        elif fence[0] == opened[0] and len(fence) >= len(opened) and found.group().strip() == fence:
            opened = ""
    if not opened:
        return text
    inside = text[start:].partition("\n")[2]
    return f"{text.rstrip()}\n{opened}" if inside.strip() else text[:start].rstrip()


def cut_tail(text: str) -> str:
    """Cut an unfinished last sentence off, where a finished one stands before it on the same line.

    A text counts as broken off when it ends in a letter, a comma or a hyphen. Lists, headings, tables and
    code are left alone: their lines need no end mark.
    """
    body = text.rstrip()
    if not body or not (body[-1].isalpha() or body[-1] in ",-–") or _inside_fence(body):
        return text
    at = body.rfind("\n") + 1
    line = body[at:]
    ends = list(_SENTENCE_END.finditer(line))
    if not ends or _LISTED.match(line):
        return text
    return body[: at + ends[-1].end()]


def _inside_fence(text: str) -> bool:
    return close_fence(text) != text


def order_roles(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Put turns in an order that can be trained on; the same turns where they are, or where none is clear.

    System turns come first and become one; a reply that stands before its only question changes places with
    it; other replies before the first question go; turns of one role in a row become one; a question without
    a reply at the end goes.
    """
    if any(m.role == "tool" for m in messages):
        return tuple(messages)
    system = [m for m in messages if m.role == "system"]
    turns = [m for m in messages if m.role != "system"]
    if [m.role for m in turns] == ["assistant", "user"]:
        turns.reverse()
    while turns and turns[0].role == "assistant":
        turns.pop(0)
    joined: list[Message] = []
    for turn in ([Message("system", "\n\n".join(m.content for m in system))] if system else []) + turns:
        if joined and joined[-1].role == turn.role:
            joined[-1] = Message(turn.role, f"{joined[-1].content}\n\n{turn.content}")
        else:
            joined.append(turn)
    while joined and joined[-1].role == "user":
        joined.pop()
    usable = any(m.role == "assistant" for m in joined)
    return tuple(joined) if usable else tuple(messages)
