"""Word tokens as NLTK's word tokenizer splits them, as far as capitals are concerned, without NLTK.

Source: the Penn Treebank tokenisation rules (Robert MacIntyre's sed script) as extended by NLTK's word
tokenizer. Rules that only detach punctuation from one word's edge (final points, the kinds of quotes) are
left out, since a token is in capitals with or without them; what separates two words, or a word from its
clitic, is here.
"""

from __future__ import annotations

import re

_CLITICS = r"(?:re|ve|ll|m|t|s|d|n)\b"
_RULES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        # Quotes that open, and an apostrophe that opens a word and is no clitic.
        (r"[«“‘„`]", r" "),
        (r"(?<=[ (\[{<])''", r" "),
        (rf"(?i)(?<!\w)'(?!{_CLITICS})(?=\w)", r"' "),
        # A comma or colon, unless a digit follows; runs of points; marks that always stand alone.
        (r"[:,](?=\D|$)", r" "),
        (r"\.{2,}", r" "),
        (r"[;@#$%&\u2012-\u2015?!*\]\[(){}<>]", r" "),
        (r"--", r" "),
        (r"[»”’\"]|''", r" "),
    )
)
_ENDINGS = (
    re.compile(r"(?<=[^' ])('[sSmMdD]|') "),
    re.compile(r"(?<=[^' ])('ll|'LL|'re|'RE|'ve|'VE|n't|N'T) "),
)
_JOINED = re.compile(
    r"(?i)\b(can)(not)\b|\b(d)('ye)\b|\b(gim)(me)\b|\b(gon)(na)\b|\b(got)(ta)\b|\b(lem)(me)\b|\b(more)('n)\b"
    r"|\b(wan)(na)(?=\s)| ('t)(is)\b| ('t)(was)\b"
)


def word_tokens(text: str) -> list[str]:
    """Return the tokens of a text that hold letters, in order; marks that stand alone are left out."""
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    text = f" {' '.join(text.split())} "
    for pattern in _ENDINGS:
        text = pattern.sub(r" \1 ", text)
    text = _JOINED.sub(lambda match: " " + " ".join(part for part in match.groups() if part) + " ", text)
    return text.split()
