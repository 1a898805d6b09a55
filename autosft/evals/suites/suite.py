"""The suite type, and items on disk as JSONL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson

from autosft.artifacts import write_atomic
from autosft.errors import SuiteError
from autosft.identity import fingerprint
from autosft.types import EvalItem, Message, Requirement


@dataclass(frozen=True)
class Suite:
    """A named, frozen list of evaluation items.

    Attributes:
        name: Suite name, as reports and scores print it.
        items: The items in a fixed order; ids are unique.
    """

    name: str
    items: tuple[EvalItem, ...]

    def __post_init__(self) -> None:
        """Refuse an empty suite and repeated ids."""
        object.__setattr__(self, "items", tuple(self.items))
        if not self.items:
            raise SuiteError("the suite holds no item", where=f"suite {self.name}")
        twice = [key for key, n in Counter(item.id for item in self.items).items() if n > 1]
        if twice:
            raise SuiteError(
                f"{len(twice)} item ids occur more than once, first {twice[0]!r}", where=f"suite {self.name}"
            )

    def __len__(self) -> int:
        return len(self.items)

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of the name and of every item, in order."""
        return fingerprint([self.name, [asdict(item) for item in self.items]])

    @property
    def leaves(self) -> tuple[str, ...]:
        """Leaf names in order of first appearance."""
        return tuple(dict.fromkeys(item.leaf for item in self.items))

    def reference_texts(self) -> tuple[str, ...]:
        """Return every text that training data must not hold: all prompt turns, then reference answers."""
        prompts = [
            message.content for item in self.items for message in item.messages if message.role != "system"
        ]
        answers = [item.reference for item in self.items if item.reference]
        return tuple(dict.fromkeys(text for text in prompts + answers if text.strip()))


def write_items(items: Iterable[EvalItem], path: Path) -> None:
    """Write items as JSONL, one a line, as `read_items` reads them. The file appears whole or not at all."""
    lines = [orjson.dumps(asdict(item), option=orjson.OPT_SORT_KEYS) for item in items]
    write_atomic(Path(path), b"".join(line + b"\n" for line in lines))


def read_items(path: Path) -> tuple[EvalItem, ...]:
    """Read what `write_items` wrote.

    Raises:
        SuiteError: The file is missing, or a line is not an item; names the line.
    """
    path = Path(path)
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise SuiteError(f"cannot read items: {error.strerror}", where=str(path)) from None
    items = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            items.append(item_from_json(orjson.loads(line)))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise SuiteError(f"not an evaluation item: {error!r}", where=f"{path}:{number}") from None
    return tuple(items)


def item_from_json(data: Mapping[str, Any]) -> EvalItem:
    """Read an item from the JSON of `dataclasses.asdict`; KeyError, TypeError, ValueError if it is none."""
    return EvalItem(
        id=str(data["id"]),
        suite=str(data["suite"]),
        messages=tuple(Message(m["role"], m["content"]) for m in data["messages"]),
        requirements=tuple(Requirement(r["id"], dict(r["kwargs"])) for r in data["requirements"]),
        leaf=str(data["leaf"]),
        tags=dict(data.get("tags") or {}),
        reference=data.get("reference"),
    )
