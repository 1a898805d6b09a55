"""The records of an exchange with a language model, independent of any vendor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from autosft.identity import fingerprint

#: What a piece of an agent's context is; the context meter counts tokens by it.
Kind = Literal[
    "instructions",
    "training_output",
    "records",
    "data_actions",
    "evaluation_output",
    "evidence",
    "reasoning",
]
KINDS: tuple[str, ...] = get_args(Kind)
#: What a call is for; their shares are what AutoSFT (arXiv:2610.22194) reports as shares of shell calls.
Purpose = Literal["execution", "reading", "data_action", "deciding"]
PURPOSES: tuple[str, ...] = get_args(Purpose)
Stop = Literal["end", "tools", "length", "refusal", "other"]
#: A token covers a byte of text at least, so bytes bound tokens; this is the usual ratio for English.
BYTES_PER_TOKEN = 3.5
#: Tokens a vendor adds for the roles of a turn, and for offering tools.
TURN_TOKENS, TOOLS_TOKENS = 16, 1_000


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of text in a turn, and what kind of context it is."""

    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call as the model wrote it; `arguments` is its JSON text, unchecked."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn: the user's, the assistant's with its tool calls, or a tool's result for `call_id`."""

    role: Literal["user", "assistant", "tool"]
    parts: tuple[Part, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""

    @property
    def text(self) -> str:
        """The parts' texts, a blank line between them."""
        return "\n\n".join(part.text for part in self.parts)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Turn:
        """Read what `asdict` made."""
        parts = tuple(Part(p["kind"], p["text"]) for p in data["parts"])
        calls = tuple(ToolCall(c["id"], c["name"], c["arguments"]) for c in data["calls"])
        return cls(data["role"], parts, calls, data["call_id"])


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool on offer: its name, what it does, the JSON schema of its arguments."""

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """One call of a model.

    Attributes:
        role: Agent role, e.g. `meta`, `data`, `review`.
        round: Round the call is made for.
        purpose: What the call is for, should it lead to an answer.
        model: Vendor, model name and whatever else decides what is generated.
        system: Instructions.
        turns: The conversation so far; ends with a user's turn or a tool's result.
        tools: Tools on offer.
        max_output_tokens: Most tokens of the reply.
    """

    role: str
    round: int
    purpose: Purpose
    model: Mapping[str, Any]
    system: str
    turns: tuple[Turn, ...]
    tools: tuple[ToolSpec, ...]
    max_output_tokens: int

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return asdict(self)

    @property
    def fingerprint(self) -> str:
        """Names the request; equal requests have one recorded reply."""
        return fingerprint(["exchange", self.to_json()])

    @property
    def most_input_tokens(self) -> int:
        """Upper bound of the input's tokens, whatever the vendor's tokenizer."""
        return sum(self.bytes_by_kind().values()) + self._overhead()

    @property
    def likely_input_tokens(self) -> int:
        """Usual number of the input's tokens."""
        return int(sum(self.bytes_by_kind().values()) / BYTES_PER_TOKEN) + self._overhead() // 4

    def bytes_by_kind(self) -> dict[str, int]:
        """Return kind of context -> bytes, tool descriptions among the instructions."""
        sizes: Counter[str] = Counter(instructions=_size(self.system))
        for tool in self.tools:
            sizes["instructions"] += _size(f"{tool.name}{tool.description}{dict(tool.schema)}")
        for turn in self.turns:
            for part in turn.parts:
                sizes[part.kind] += _size(part.text)
            for call in turn.calls:
                sizes["reasoning"] += _size(call.name + call.arguments)
        return dict(sizes)

    def _overhead(self) -> int:
        return TURN_TOKENS * (len(self.turns) + 1) + (TOOLS_TOKENS if self.tools else 0)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call. `input_tokens` are those that were neither read from nor written to a cache."""

    input_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0

    @property
    def total(self) -> int:
        """All tokens."""
        return self.input_tokens + self.cached_tokens + self.cache_write_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model returned: text, tool calls, why it stopped, what it used (None where unsaid)."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    stop: Stop = "end"
    usage: Usage | None = field(default=None)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data; `Reply.from_json` reads it back."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Reply:
        """Read what `to_json` wrote."""
        calls = tuple(ToolCall(c["id"], c["name"], c["arguments"]) for c in data["calls"])
        usage = None if data["usage"] is None else Usage(**data["usage"])
        return cls(data["text"], calls, data["stop"], usage)


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
