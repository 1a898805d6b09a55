"""Answers that meet a constraint and ignore the question: blank, an echo of the prompt, repetition.

A flag never changes a verdict: flagged passes are counted beside the score, since a rise that comes with more
of them is no gain.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from autosft.types import Requirement

Flag = str
FLAGS: tuple[Flag, ...] = ("empty", "echo", "repetition")
_WORD = re.compile(r"\w+")
#: Requirements that ask for the prompt's own words.
_ASK_FOR_ECHO = ("combination:repeat_prompt", "repeat:")
#: Requirements that a few words repeated may rightly meet.
_ASK_FOR_REPETITION = ("keywords:frequency", "count:keywords_multiple", "keywords:letter_frequency")
MIN_WORDS = 8
ECHO_WORDS = 5
ECHO_FRAC = 0.8
REPEATED_FRAC = 0.5
TYPE_FRAC = 0.2


def content_flags(prompt: str, response: str, requirements: Sequence[Requirement] = ()) -> tuple[Flag, ...]:
    """Return why a response looks like no answer; empty where it looks like one.

    `empty`: no letter or digit. `echo`: at least 80 % of its words lie in runs of five words that the prompt
    holds, unless a requirement asks for a repetition of the prompt, in which case the rest is looked at.
    `repetition`: of eight words or more, half are one word or four fifths repeat earlier ones; or most lines
    are equal.

    Args:
        prompt: The request.
        response: Any text.
        requirements: What the response must satisfy.
    """
    ids = [requirement.id for requirement in requirements]
    words = _WORD.findall(response.lower())
    if not words:
        return ("empty",)
    asked = _WORD.findall(prompt.lower())
    if any(key.startswith(_ASK_FOR_ECHO) for key in ids):
        if any(key.startswith("repeat:") for key in ids):
            return ()
        rest = _after_repeated(response, requirements)
        return () if rest is None or _WORD.search(rest) else ("echo",)
    flags = []
    if _echoes(words, asked):
        flags.append("echo")
    if not any(key in _ASK_FOR_REPETITION for key in ids) and _repeats(words, response):
        flags.append("repetition")
    return tuple(flags)


def _echoes(words: Sequence[str], asked: Sequence[str]) -> bool:
    if len(words) < ECHO_WORDS or len(asked) < ECHO_WORDS:
        return False
    known = set(zip(*(asked[k:] for k in range(ECHO_WORDS)), strict=False))
    covered = bytearray(len(words))
    for start, run in enumerate(zip(*(words[k:] for k in range(ECHO_WORDS)), strict=False)):
        if run in known:
            covered[start : start + ECHO_WORDS] = b"\1" * ECHO_WORDS
    return sum(covered) >= ECHO_FRAC * len(words)


def _repeats(words: Sequence[str], response: str) -> bool:
    if len(words) >= MIN_WORDS:
        counts = Counter(words)
        if max(counts.values()) >= REPEATED_FRAC * len(words) or _few_kinds(words):
            return True
    lines = [line.strip() for line in response.splitlines() if _WORD.search(line)]
    return len(lines) >= 4 and max(Counter(lines).values()) > REPEATED_FRAC * len(lines)


def _few_kinds(words: Sequence[str]) -> bool:
    """Whether most stretches of fifty words (long texts repeat words by nature) hold few different ones."""
    stretch = 50
    if len(words) < stretch:
        return len(set(words)) <= TYPE_FRAC * len(words)
    starts = range(0, len(words) - stretch + 1, stretch)
    poor = sum(len(set(words[k : k + stretch])) <= TYPE_FRAC * stretch for k in starts)
    return poor * 2 > len(starts)


def _after_repeated(response: str, requirements: Sequence[Requirement]) -> str | None:
    """Return what follows the repeated request, or None where the response does not start with it."""
    for requirement in requirements:
        repeated = str(requirement.kwargs.get("prompt_to_repeat", "")).strip()
        if repeated and response.strip().lower().startswith(repeated.lower()):
            return response.strip()[len(repeated) :]
    return None
