"""What a chat template makes of a sequence of roles, found once and filled in for every row.

Rendering a template costs more than tokenizing what comes out. Most templates only put fixed text around
contents: they are rendered once a sequence of roles, with marks for contents, and the fixed text is kept.
Rows whose content a template may look into (white space at the ends, or a literal of the template's source)
are rendered one by one, and so is a sample of the others, as a guard.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from autosft.errors import TemplateError
from autosft.pool.template import ChatTemplate, Piece
from autosft.types import Message

_LITERAL = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"")
#: Literals of letters alone name roles and fields; templates test contents for marks such as `</think>`.
_PLAIN = re.compile(r"[A-Za-z_ ]*")
SAMPLE_EVERY = 128


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece as fixed texts and numbers of turns, alternately needed."""

    parts: tuple[str | int, ...]
    loss: bool


class Skeletons:
    """Pieces of conversations, by the shape of their roles where the template allows it.

    Args:
        template: Renders the others, and the sample.
    """

    def __init__(self, template: ChatTemplate) -> None:
        self._template = template
        self._shapes: dict[tuple[str, ...], tuple[_Part, ...] | None] = {}
        self._used: dict[tuple[str, ...], int] = {}
        literals = {a or b for a, b in _LITERAL.findall(template.source)}
        literals = {t.encode().decode("unicode_escape", "ignore") for t in literals} | literals
        tests = sorted(t for t in literals if t.strip() and not _PLAIN.fullmatch(t))
        self._tested = re.compile("|".join(map(re.escape, tests)) or "(?!)")

    def pieces(self, messages: Sequence[Message]) -> list[Piece]:
        """Split a rendered conversation, as `ChatTemplate.pieces` does.

        Raises:
            TemplateError: As there.
        """
        roles = tuple(m.role for m in messages)
        if roles not in self._shapes:
            self._shapes[roles] = self._shape(roles)
        shape = self._shapes[roles]
        if shape is None or not all(self._plain(m.content) for m in messages):
            return self._template.pieces(messages)
        filled = [_fill(part, messages) for part in shape]
        found = [piece for piece in filled if piece.text]
        self._used[roles] = used = self._used.get(roles, -1) + 1
        if used % SAMPLE_EVERY == 0:
            rendered = self._template.pieces(messages)
            if rendered != found:
                self._shapes[roles] = None
                return rendered
        return found

    def _plain(self, content: str) -> bool:
        if not content or content[0].isspace() or content[-1].isspace():
            return False
        return not (self._tested.search(content) or self._template.spells_special(content))

    def _shape(self, roles: tuple[str, ...]) -> tuple[_Part, ...] | None:
        """Return the fixed parts, or None where the template refuses the roles or changes contents."""
        marks = [f"x{number}qz{number * 7919 + 13}x" for number in range(len(roles))]
        try:
            pieces = self._template.pieces(
                [Message(role, mark) for role, mark in zip(roles, marks, strict=True)]
            )
        except TemplateError:
            return None
        seen: list[int] = []
        shape = []
        place = {mark: number for number, mark in enumerate(marks)}
        finder = re.compile("(" + "|".join(map(re.escape, sorted(marks, key=len, reverse=True))) + ")")
        for piece in pieces:
            parts: list[str | int] = []
            for text in finder.split(piece.text):
                if text in place:
                    parts.append(place[text])
                    seen.append(place[text])
                elif text:
                    parts.append(text)
            shape.append(_Part(tuple(parts), piece.loss))
        return tuple(shape) if seen == list(range(len(roles))) else None


def _fill(part: _Part, messages: Sequence[Message]) -> Piece:
    return Piece("".join(messages[p].content if isinstance(p, int) else p for p in part.parts), part.loss)
