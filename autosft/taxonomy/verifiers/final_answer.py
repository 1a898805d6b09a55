"""The answer a response settles on: its final number or its final choice."""

from __future__ import annotations

import re
from bisect import bisect_left
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from autosft.errors import VerifierError

NUMBER = re.compile(r"(?<![\w.])[-+]?\$?(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?:\s*/\s*\d+)?(?![\d])")
MARKED = re.compile(r"(?:####|\\boxed\{|\b(?:final )?answer(?: is|:)?)", re.IGNORECASE)
MAX_DIGITS = 400


def parse_number(value: int | float | str) -> Fraction:
    """Return a number given as a number or as text such as '1,200', '$3.50', '3/4' or '-2'.

    Raises:
        VerifierError: It is not a finite number.
    """
    text = str(value).strip().replace(",", "").replace("$", "").replace(" ", "").rstrip(".%")
    try:
        if len(text) > MAX_DIGITS:
            raise ValueError("too long")
        over, _, under = text.partition("/")
        return Fraction(Decimal(over)) / (Fraction(Decimal(under)) if under else 1)
    except (ValueError, OverflowError, InvalidOperation, ZeroDivisionError):
        raise VerifierError(
            f"{str(value)[:40]!r} is not a number", where="requirement answer:number"
        ) from None


def final_number(response: str) -> Fraction | None:
    r"""Return the number a response ends on, or None.

    The first number after the last '####' or '\boxed{' or 'answer is'; without such a marker, the last
    number.
    """
    numbers = list(NUMBER.finditer(response))
    if not numbers:
        return None
    starts = [found.start() for found in numbers]
    marks = [mark.end() for mark in MARKED.finditer(response) if mark.end() <= starts[-1]]
    chosen = numbers[bisect_left(starts, marks[-1])] if marks else numbers[-1]
    return _number(chosen.group())


def _number(text: str) -> Fraction | None:
    try:
        return parse_number(text)
    except VerifierError:
        return None


def final_choice(response: str, letters: str = "ABCDE") -> str | None:
    """Return the letter a response settles on in capitals, or None.

    The letter after the last 'answer is' or 'answer:'; without one, the last of the letters that stands alone
    as '(B)', 'B.', 'B)' or as the whole of a line.
    """
    group = "".join(re.escape(letter) for letter in letters.upper() + letters.lower())
    stated = re.findall(
        rf"\banswer(?:\s+is|:)\s*:?\s*[\"'(\[*]*([{group}])(?![\w'’])", response, re.IGNORECASE
    )
    if stated:
        return str(stated[-1]).upper()
    alone = re.findall(
        rf"\(([{group}])\)|^\W*([{group}])\W*$|(?<![\w'’])([{group.upper()}])[.):]", response, re.MULTILINE
    )
    return next((part for part in alone[-1] if part), "").upper() if alone else None
