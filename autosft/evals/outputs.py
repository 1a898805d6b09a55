"""Generated answers, in memory and as JSONL."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import orjson

from autosft.artifacts import write_atomic
from autosft.errors import SuiteError


@dataclass(frozen=True, slots=True)
class Output:
    """One generated answer.

    Attributes:
        item: Item id.
        text: The answer, without the end-of-turn token.
        truncated: True where generation stopped at the token limit instead of the end of the turn.
        tokens: Generated tokens.
        sample: Number of the sample, from 0, where an item is answered several times.
    """

    item: str
    text: str
    truncated: bool = False
    tokens: int = 0
    sample: int = 0


def write_outputs(outputs: Iterable[Output], path: Path) -> None:
    """Write outputs as JSONL, one a line; the file appears whole or not at all."""
    write_atomic(Path(path), b"".join(orjson.dumps(asdict(output)) + b"\n" for output in outputs))


def read_outputs(path: Path) -> list[Output]:
    """Read what `write_outputs` wrote.

    Raises:
        SuiteError: The file cannot be read, or a line is not an output; names the line.
    """
    path, known = Path(path), {field.name for field in fields(Output)}
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise SuiteError(f"cannot read outputs: {error.strerror}", where=str(path)) from None
    outputs = []
    for number, line in enumerate(lines, start=1):
        try:
            data = orjson.loads(line)
            if not isinstance(data["text"], str):
                raise ValueError("text is not a string")
            outputs.append(Output(**{key: value for key, value in data.items() if key in known}))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise SuiteError(f"not an output: {error!r}", where=f"{path}:{number}") from None
    return outputs
