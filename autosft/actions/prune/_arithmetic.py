"""Sums that a text states: `12 * 3 = 36` is right, `12 * 3 = 35` is wrong, and what is unclear is neither."""

from __future__ import annotations

import re
from fractions import Fraction

_NUMBER = r"\$?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
_STATED = re.compile(
    rf"(?P<sum>{_NUMBER}(?:\s*[-+*/x×÷−]\s*{_NUMBER})+)\s*=\s*(?P<result>[-−]?\s*{_NUMBER})", re.IGNORECASE
)
_TOKEN = re.compile(rf"{_NUMBER}|[-+*/x×÷−]", re.IGNORECASE)
_SIGNS = {"x": "*", "X": "*", "×": "*", "÷": "/", "−": "-"}
_OPENS = frozenset(" \t\n(<[\"'`:;,|*_")
# Before a sum these make it the end of a longer one; after the result they go on with it.
_JOINS_BEFORE, _JOINS_AFTER = frozenset("+-−*/x×÷^=%)"), frozenset("+-−*/x×÷^%(")
MAX_DIGITS = 30


def wrong_sums(text: str) -> list[str]:
    """Return the statements `a op b = c` of a text that are wrong beyond rounding, as they stand.

    Left alone: parts of longer expressions, sums with letters, percentages or powers, dates and codes
    (numbers with a leading zero), numbers of more than 30 digits.
    """
    return [
        found.group() for found in _STATED.finditer(text) if _stands_alone(text, found) and _is_wrong(found)
    ]


def _stands_alone(text: str, found: re.Match[str]) -> bool:
    before, after = text[: found.start()], text[found.end() :]
    if before and before[-1] not in _OPENS:
        return False
    if before.rstrip(" \t")[-1:] in _JOINS_BEFORE and not _is_bullet(before):
        return False
    if re.match(r"[\w%]|\s*[.,]\d|\s\d|\s*=\s*\d", after):
        return False
    following = after.lstrip(" \t")[:1]
    return following not in _JOINS_AFTER or not re.match(r"\s*.\s*[\d(\w]", after)


def _is_bullet(before: str) -> bool:
    return bool(re.search(r"(?:^|\n)[ \t]*[-*+][ \t]+$", before)) or before.endswith("**")


def _is_wrong(found: re.Match[str]) -> bool:
    parts = [_SIGNS.get(part, part) for part in _TOKEN.findall(found.group("sum"))]
    numbers = [*parts[::2], found.group("result").lstrip("-− ")]
    plain = [n.replace("$", "").replace(",", "") for n in numbers]
    signs = parts[1::2]
    if any(len(n) > MAX_DIGITS or re.match(r"0\d", n) for n in plain) or _is_fraction(plain, signs):
        return False
    values = [Fraction(n) for n in plain]
    result = -values[-1] if found.group("result")[0] in "-−" else values[-1]
    worth = _worth(values[:-1], signs)
    decimals = len(plain[-1].partition(".")[2])
    if worth is None:
        return False
    if decimals == 0 and "/" not in signs and all("." not in n for n in plain):
        return worth != result
    # A stated result may be rounded or cut off: it then misses by less than a unit of its last place.
    return abs(worth - result) >= Fraction(1, 10**decimals)


def _is_fraction(numbers: list[str], signs: list[str]) -> bool:
    """Whether a slash may be a fraction's: in `half, 1/2 = 12`, or in `25 / 1/3 = 75`."""
    if signs.count("/") > 1:
        return True
    return signs == ["/"] and "." not in numbers[0] + numbers[1] and int(numbers[0]) < int(numbers[1])


def _worth(values: list[Fraction], signs: list[str]) -> Fraction | None:
    """Return what a sum is worth, products first; None where it divides by zero."""
    terms = [values[0]]
    for sign, value in zip(signs, values[1:], strict=True):
        if sign == "*":
            terms[-1] *= value
        elif sign == "/":
            if value == 0:
                return None
            terms[-1] /= value
        else:
            terms.append(-value if sign == "-" else value)
    return sum(terms, Fraction(0))
