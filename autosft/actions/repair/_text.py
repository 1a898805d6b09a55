"""Small operations on texts that edits are made of."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable

_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+|\n+")
_INTERJECTION = re.compile(r"^(?:well|oh|sure|yes|no|so|okay|ok|of course|certainly),\s+", re.IGNORECASE)
_ASIDE = re.compile(r",\s+(?:an?|the|which|who)\s[^,.!?]*,\s+")


def sentences(text: str) -> list[str]:
    """Split a text into sentences and lines, end marks kept, blanks dropped."""
    return [part.strip() for part in _END.split(text) if part and part.strip()]


def append(text: str, sentence: str) -> str:
    """Add a sentence at the end; an unfinished last sentence is closed first."""
    body = text.rstrip()
    if body and body[-1] not in ".!?\"'*)]}>:":
        body += "."
    return f"{body} {sentence}" if body else sentence


def capitalise(text: str) -> str:
    """Return the text with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def tidy(text: str) -> str:
    """Close the holes that removed words leave: double spaces, spaces before marks, lost capitals."""
    text = re.sub(r"[ \t]{2,}", " ", text)
    text = re.sub(r"\s+([.,!?;:])", r"\1", text)
    text = re.sub(r"^[\s,;:.]+", "", text)
    return capitalise(text.rstrip())


def plainer(text: str) -> list[str]:
    """Return shorter ways to say it: without an opening interjection, without asides between commas."""
    shorter = [
        capitalise(_INTERJECTION.sub("", text)),
        _ASIDE.sub(" ", text),
        capitalise(_ASIDE.sub(" ", _INTERJECTION.sub("", text))),
    ]
    return [s for s in dict.fromkeys(shorter) if s != text]


def without_commas(text: str) -> str:
    """Remove commas: thousands close up, others become a space."""
    return re.sub(r"\s*,\s*", " ", re.sub(r"(?<=\d),(?=\d)", "", text))


def groups(parts: list[str], n: int) -> list[list[str]] | None:
    """Deal parts into n runs, none empty; None where there are too few."""
    if n < 1 or len(parts) < n:
        return None
    size, extra = divmod(len(parts), n)
    bounds = [0]
    for k in range(n):
        bounds.append(bounds[-1] + size + (k < extra))
    return [parts[a:b] for a, b in itertools.pairwise(bounds)]


def inside(text: str, change: Callable[[str], str]) -> str:
    """Apply a change inside the envelope a text has: double quotes, or a JSON object's first text."""
    body = text.strip()
    if len(body) > 2 and body[0] == body[-1] == '"':
        return f'"{change(body[1:-1])}"'
    if body.startswith("{"):
        try:
            data = json.loads(body)
        except (ValueError, RecursionError):
            return change(text)
        key = (
            next((k for k, v in data.items() if isinstance(v, str)), None) if isinstance(data, dict) else None
        )
        if key is not None:
            return json.dumps({**data, key: change(data[key])}, ensure_ascii=False)
    return change(text)
