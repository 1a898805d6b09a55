"""Who plays which role: agents with contexts of their own, or, in the smaller variants, one agent for all.

Each component that is switched off leaves its work to the agent `solo`, whose one context grows over the
campaign and is compacted when it nears the window. That is the variant `base` of the additive ablation.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, TypeVar

from autosft.artifacts import Artifact, ArtifactStore
from autosft.config import Config
from autosft.errors import ArtifactError
from autosft.identity import fingerprint
from autosft.llm import Caller, Part, Turn, render
from autosft.memory.transcripts import COMPACTION
from autosft.subagents.conversation import Abstained, Question, converse

T = TypeVar("T")
SOLO = "solo"
#: Component -> roles with contexts of their own once it is on.
ROLES_OF: Mapping[str, tuple[str, ...]] = {
    "executor": ("executor",),
    "analysis": ("meta", "data", "failures", "dynamics", "history"),
    "synthesis": ("synthesis", "review", "teacher"),
}
#: The shared context is compacted before a request would fill this share of the window.
COMPACT_AT = 0.75
#: Order of what happens in a round, for picking up the shared context where it was left.
STEPS = ("tree", "propose", "decide", "make", "execute")


class Office:
    """Asks roles questions.

    Args:
        caller: Makes the calls.
        store: Keeps the shared context, one artifact a question.
        config: Says which components are on and how tools are offered.
    """

    def __init__(self, caller: Caller, store: ArtifactStore, config: Config) -> None:
        self.caller = caller
        self.settings = config.llm
        self._store = store
        on = {name: getattr(config.components, name) for name in ROLES_OF}
        self._own = {role for name, roles in ROLES_OF.items() if on[name] for role in roles}
        self._lock = threading.Lock()

    def player(self, role: str) -> str:
        """Return who plays a role: itself, or `solo`."""
        return role if role in self._own else SOLO

    def ask(self, question: Question[T], step: str) -> T:
        """Ask a role; `step` says where in the round this happens (`STEPS`).

        Raises:
            Abstained: There is no usable answer.
            SpendCapError: The campaign's cap is used up.
            ReplayError: A replayed campaign lacks the recording.
        """
        if self.player(question.role) == SOLO:
            with self._lock:
                return self._ask_solo(question, step)
        turns = [Turn("user", question.parts)]
        answer, _ = self._converse(question.role, question.instructions, turns, question)
        return answer

    def _converse(
        self, player: str, system: str, turns: list[Turn], question: Question[T]
    ) -> tuple[T, list[Turn]]:
        settings = self.settings
        return converse(
            self.caller,
            player,
            system,
            turns,
            question,
            most_calls=settings.tool_calls,
            native=settings.native_tools,
        )

    # --- the shared context

    def _ask_solo(self, question: Question[T], step: str) -> T:
        parts = (Part("instructions", question.instructions), *question.parts)
        turn = Turn("user", parts)
        before, place = self._context(question.round, step)
        context = self._fitting(before, turn, question)
        key = fingerprint(["context", place, [asdict(t) for t in context], asdict(turn)])
        kept = self._store.find("context", key)
        system = render("solo")
        try:
            answer, turns = self._converse(SOLO, system, [*context, turn], question)
        except Abstained as error:
            note = Part("reasoning", f"(no usable answer: {error})")
            self._keep(kept, key, place, [*context, turn, Turn("assistant", (note,))])
            raise
        self._keep(kept, key, place, _closed(turns))
        return answer

    def _context(self, number: int, step: str) -> tuple[list[Turn], list[int]]:
        """Return the latest context from before this step, and the step's place."""
        best: tuple[list[int], str, Artifact] | None = None
        here = [number, STEPS.index(step), 0]
        for folder in sorted((self._store.root / "context").glob("*")):
            try:
                found = self._store.load("context", folder.name)
            except ArtifactError:
                continue
            place = list(found.data["place"])
            if place[:2] >= here[:2]:
                continue
            if best is None or (place, folder.name) > (best[0], best[1]):
                best = (place, folder.name, found)
        if best is None:
            return [], here
        return [Turn.from_json(turn) for turn in best[2].data["turns"]], here

    def _keep(self, kept: Artifact | None, key: str, place: list[int], turns: list[Turn]) -> None:
        if kept is None:
            with self._store.create("context", key) as made:
                made.data = {"place": place, "turns": [asdict(turn) for turn in turns]}

    def _fitting(self, context: list[Turn], turn: Turn, question: Question[Any]) -> list[Turn]:
        """Return the context, compacted if it and the question would near the window."""
        endpoint = self.caller.endpoint(SOLO)
        room = COMPACT_AT * endpoint.window_tokens - endpoint.max_output_tokens
        if not context or _tokens([*context, turn]) <= room:
            return context
        summary = replace(
            question,
            purpose="reading",
            tools=(),
            schema=_SUMMARY,
            parse=lambda data: str(data.get("summary", ""))[:8_000],
        )
        ask = Turn("user", (Part("instructions", f"{COMPACTION} {render('compaction')}"),))
        while (
            len(context) > 2
            and _tokens([*context, ask]) > endpoint.window_tokens - endpoint.max_output_tokens
        ):
            context = _without_oldest(context)
        try:
            text, _ = self._converse(SOLO, render("solo"), [*context, ask], summary)
        except Abstained:
            text = ""
        if not text.strip():
            # Nothing usable came back: what is newest is kept as it is.
            while len(context) > 2 and _tokens([*context, turn]) > room:
                context = _without_oldest(context)
            return context if _tokens([*context, turn]) <= room else []
        return [
            Turn("user", (Part("reasoning", f"Your own summary of everything before:\n{text}"),)),
            Turn("assistant", (Part("reasoning", "Understood."),)),
        ]


_SUMMARY = {
    "type": "object",
    "properties": {"summary": {"type": "string"}},
    "required": ["summary"],
    "additionalProperties": False,
}


def _closed(turns: list[Turn]) -> list[Turn]:
    """Return a conversation that another user's turn may follow: open calls of the last turn are closed."""
    last = turns[-1]
    done = Part("instructions", "Taken.")
    return [*turns, *(Turn("tool", (done,), (), call.id) for call in last.calls)]


def _without_oldest(context: list[Turn]) -> list[Turn]:
    """Drop the oldest question with everything up to the next question."""
    later = [i for i, turn in enumerate(context) if turn.role == "user" and i > 0]
    return context[later[0] :] if later else []


def _tokens(turns: list[Turn]) -> int:
    size = sum(len(part.text.encode("utf-8", "replace")) for turn in turns for part in turn.parts)
    size += sum(len(call.arguments) for turn in turns for call in turn.calls)
    return int(size / 3.5) + 20 * len(turns)
