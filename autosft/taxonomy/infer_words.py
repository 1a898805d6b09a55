"""Words of requirements: numbers, relations, lists, languages."""

from __future__ import annotations

import re

from autosft.taxonomy.verifiers.relation import Relation

_NAMES = (
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
)
_WORDS = {name: value for value, name in enumerate(_NAMES)} | {
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "hundred": 100,
    "once": 1,
    "twice": 2,
}
NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d+|" + "|".join(sorted(_WORDS, key=len, reverse=True)[:-2]) + ")"
QUOTED = r"(?:[\"“'‘](?P<q1>[^\"”'’\n]{1,40})[\"”'’]|\*(?P<q2>[^*\n]{1,40})\*)"
#: Language name -> ISO 639-1 code, as the detector names them.
LANGUAGES = {
    "arabic": "ar",
    "bengali": "bn",
    "bulgarian": "bg",
    "english": "en",
    "finnish": "fi",
    "french": "fr",
    "german": "de",
    "gujarati": "gu",
    "hindi": "hi",
    "italian": "it",
    "japanese": "ja",
    "kannada": "kn",
    "korean": "ko",
    "marathi": "mr",
    "nepali": "ne",
    "persian": "fa",
    "polish": "pl",
    "portuguese": "pt",
    "punjabi": "pa",
    "russian": "ru",
    "spanish": "es",
    "swahili": "sw",
    "tamil": "ta",
    "telugu": "te",
    "thai": "th",
    "urdu": "ur",
    "vietnamese": "vi",
}
_MORE = re.compile(r"(?:at least|no less than|no fewer than|minimum of|min\.?) *$", re.IGNORECASE)
_MORE_STRICTLY = re.compile(r"(?:more than|over|above|greater than|exceeding) *$", re.IGNORECASE)
_LESS = re.compile(r"(?:less than|fewer than|under|below) *$", re.IGNORECASE)
_LESS_OR_EQUAL = re.compile(
    r"(?:at most|no more than|not more than|up to|maximum of|not exceed|within) *$", re.IGNORECASE
)


def number_of(text: str) -> int | None:
    """Return the number a word or digits stand for, or None."""
    text = text.strip().lower()
    if text in _WORDS:
        return _WORDS[text]
    digits = text.replace(",", "")
    return int(digits) if digits.isdecimal() and len(digits) < 7 else None


def amount(before: str, after: str, n: int) -> tuple[Relation, int] | None:
    """Return the relation and threshold that the words around a number state, or None.

    Thresholds are IFEval's: `less than` excludes its number, `at least` includes it.
    """
    before, after = before.strip() + " ", after.strip()
    if _MORE.search(before) or after.startswith(("+", "or more")):
        return "at least", n
    if _LESS_OR_EQUAL.search(before) or after.startswith(("or fewer", "or less")):
        return "less than", n + 1
    if _MORE_STRICTLY.search(before):
        return "at least", n + 1
    return ("less than", n) if _LESS.search(before) else None


def sentences_of(text: str) -> list[str]:
    """Return the pieces between full stops and line ends, quotes left whole."""
    return re.split(r"(?<=[.!?])\s+|\n+", text)


def split_list(text: str) -> list[str]:
    """Return the words of a list such as `"a", "b" and c`, or [] where the text is none."""
    quoted = re.findall(r"[\"“]([^\"”\n]{1,40})[\"”]|(?<!\w)['‘]([^'’\n]{1,40})['’](?!\w)", text)
    if quoted:
        return [(double or single).strip(" ,.") for double, single in quoted]
    plain = re.split(r"[.;!?]|\b(?:in|somewhere|within|anywhere|at|throughout) (?:your|the|it)\b", text)[0]
    words = [part.strip() for part in re.split(r",\s*(?:and |or )?|\s+(?:and|or)\s+", plain)]
    words = [word for word in words if word]
    return words if words and all(re.fullmatch(r"[\w'-]+", word) for word in words) else []
