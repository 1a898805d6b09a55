"""Chat templates: rendering turns, and finding the text that the loss applies to.

Content is data. Where a turn's text spells one of the tokenizer's special tokens, a break character is put
inside it before rendering; the encoder splits the rendered text there, so the token can only come from the
template itself. As a consequence the first end-of-turn token after an assistant turn's start ends that turn.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from autosft.errors import TemplateError
from autosft.types import Message

# Plain-text turns, for a base that ships no template. The end-of-sequence token ends a turn, so that a base
# model learns to stop. A header ends with a newline: nothing merges across it.
DEFAULT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{%- if message['role'] == 'assistant' -%}"
    "{{- 'Assistant:\n' -}}"
    "{%- generation -%}{{- message['content'] + eos_token -}}{%- endgeneration -%}"
    "{{- '\n' -}}"
    "{%- else -%}"
    "{{- message['role'].capitalize() + ':\n' + message['content'] + '\n' -}}"
    "{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- 'Assistant:\n' -}}{%- endif -%}"
)
# Templates that print today's date would give other tokens tomorrow: while encoding, time stands still.
_FROZEN_DATE = (
    "{%- macro strftime_now(format) -%}"
    "{{- {'%Y-%m-%d': '2025-01-01', '%B %d, %Y': 'January 01, 2025'}.get(format, '01 Jan 2025') -}}"
    "{%- endmacro -%}"
)
_MARKERS = re.compile(r"\{%-?\s*generation\s*-?%\}")
# Unicode noncharacters: never part of text that is meant for reading.
_BREAKS = [chr(code) for code in range(0xFDD0, 0xFDF0)]
_PROBE = "probe reply"


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of rendered text that is tokenized on its own."""

    text: str
    loss: bool


class ChatTemplate:
    """A base's chat template with the tokens it may write.

    Args:
        source: Jinja text; `{% generation %}` markers are used where it has them.
        variables: Special token names and texts the template may refer to (`bos_token`, `eos_token`, ...).
        special_tokens: Texts of tokens that content must never produce.
        added_tokens: Texts of all added tokens, among which the end-of-turn token is looked for.

    Raises:
        TemplateError: The template cannot render a plain exchange, or ends an assistant turn without a token.
    """

    def __init__(
        self,
        source: str,
        variables: dict[str, str],
        special_tokens: Sequence[str],
        added_tokens: Sequence[str],
    ) -> None:
        self.source = source
        self._frozen = _FROZEN_DATE + source if "strftime_now" in source else source
        self._variables = variables
        self._marked = bool(_MARKERS.search(source))
        self.end_of_turn = self._find_end_of_turn(added_tokens)
        self._special = _any_of([*special_tokens, self.end_of_turn])

    def spells_special(self, text: str) -> bool:
        """Return whether a content spells a special token and so must be broken before rendering."""
        return self._special.search(text) is not None

    def pieces(self, messages: Sequence[Message]) -> list[Piece]:
        """Split a rendered conversation: `loss` is true on each assistant turn and its end-of-turn token.

        Raises:
            TemplateError: The template refuses the turns, or an assistant turn cannot be found exactly.
        """
        turns, mark = self._broken(messages)
        return _split(*self._spans(turns), mark)

    def prompt_pieces(self, messages: Sequence[Message]) -> list[Piece]:
        """Split a rendered prompt (with the header of the next assistant turn); `loss` has no meaning here.

        Earlier assistant turns are split as in training, so that a prompt's tokens are a prefix of the row's.

        Raises:
            TemplateError: The template refuses the turns.
        """
        turns, mark = self._broken(messages)
        text, _ = self._render(turns, prompt=True)
        try:
            spans = self._spans(turns)[1] if any(t["role"] == "assistant" for t in turns) else []
        except TemplateError:
            spans = []
        return _split(text, spans, mark)

    def _spans(self, turns: list[dict[str, str]]) -> tuple[str, list[tuple[int, int]]]:
        text, marked = self._render(turns)
        replies = [i for i, turn in enumerate(turns) if turn["role"] == "assistant"]
        if marked is None:
            starts = [self._start(text, turns, i) for i in replies]
        elif len(marked) == len(replies):
            starts = [start for start, _ in marked]
        else:
            raise TemplateError(
                f"the template marks {len(marked)} replies of {len(replies)}", where="generation markers"
            )
        spans: list[tuple[int, int]] = []
        for reply, start in zip(replies, starts, strict=True):
            stop = text.find(self.end_of_turn, start)
            shown = text[start:stop].rstrip() if stop >= 0 else ""
            in_order = not spans or start >= spans[-1][1]
            if stop < 0 or not in_order or not shown.endswith(turns[reply]["content"].strip()):
                raise TemplateError(
                    "the template rewrites an assistant turn, or gives it no end-of-turn token",
                    where=f"turn {reply + 1}",
                )
            spans.append((start, stop + len(self.end_of_turn)))
        return text, spans

    def _start(self, text: str, turns: list[dict[str, str]], reply: int) -> int:
        """Where a reply starts: after what a generation prompt for it would be, verified to be a prefix."""
        prompt, _ = self._render(turns[:reply], prompt=True)
        if not text.startswith(prompt):
            raise TemplateError(
                "the conversation does not start with its own prompt, so its loss mask is not exact",
                where=f"turn {reply + 1}",
                hint="add {% generation %} markers to the base's chat template",
            )
        return len(prompt)

    def _render(
        self, turns: list[dict[str, str]], *, prompt: bool = False
    ) -> tuple[str, list[tuple[int, int]] | None]:
        from transformers.utils.chat_template_utils import render_jinja_template

        try:
            rendered, marked = render_jinja_template(
                conversations=[turns],
                chat_template=self._frozen,
                return_assistant_tokens_mask=self._marked,
                add_generation_prompt=prompt,
                **self._variables,
            )
        except Exception as error:
            raise TemplateError(
                f"the chat template refuses the turns: {error}", where=_roles(turns)
            ) from None
        return rendered[0], (marked[0] if self._marked else None)

    def _find_end_of_turn(self, added_tokens: Sequence[str]) -> str:
        text, _ = self._render(
            [{"role": "user", "content": "probe"}, {"role": "assistant", "content": _PROBE}]
        )
        at = text.find(_PROBE)
        found = _any_of(added_tokens).search(text, at + len(_PROBE)) if at >= 0 else None
        if found is None:
            raise TemplateError(
                "the chat template ends an assistant turn without a token: no model could learn to stop",
                hint="write the end-of-sequence token after each assistant turn",
            )
        return found.group()

    def _broken(self, messages: Sequence[Message]) -> tuple[list[dict[str, str]], str]:
        """Turns as the template takes them, special tokens inside content broken; and the break character."""
        if not any(self._special.search(m.content) for m in messages):
            return [{"role": m.role, "content": m.content} for m in messages], ""
        mark = next((b for b in _BREAKS if all(b not in m.content for m in messages)), None)
        if mark is None:
            raise TemplateError(
                "the row holds special tokens and every Unicode noncharacter", where="content"
            )
        return [{"role": m.role, "content": self._break(m.content, mark)} for m in messages], mark

    def _break(self, text: str, mark: str) -> str:
        done, at = [], 0
        while found := self._special.search(text, at):
            cut = found.start() + 1
            if len(found.group()) < 2:
                raise TemplateError(
                    f"content holds the one-character special token {found.group()!r}", where="content"
                )
            done.append(text[at:cut] + mark)
            at = cut
        return "".join([*done, text[at:]])


def _any_of(texts: Sequence[str]) -> re.Pattern[str]:
    longest_first = sorted({t for t in texts if t}, key=lambda t: (-len(t), t))
    return re.compile("|".join(map(re.escape, longest_first)) or "(?!)")


def _split(text: str, spans: list[tuple[int, int]], mark: str) -> list[Piece]:
    pieces, at = [], 0
    for start, stop in spans:
        pieces += [Piece(text[at:start], False), Piece(text[start:stop], True)]
        at = stop
    pieces.append(Piece(text[at:], False))
    if mark:
        pieces = [Piece(part, piece.loss) for piece in pieces for part in piece.text.split(mark)]
    return [piece for piece in pieces if piece.text]


def _roles(turns: list[dict[str, Any]]) -> str:
    roles = [turn["role"] for turn in turns]
    return ", ".join(roles[:8]) + (", ..." if len(roles) > 8 else "")
