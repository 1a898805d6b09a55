"""Word tokens as NLTK's word tokenizer splits them, as far as capitals are concerned, without NLTK.

Source: the Penn Treebank tokenisation rules (Robert MacIntyre's sed script) as extended by NLTK's word
tokenizer. Rules that only detach punctuation from one word's edge are left out, since a token is in capitals
with or without it; what separates two words, or a word from its clitic, is here. NLTK splits sentences first,
with a trained model; that changes the count only where a sentence inside the text ends in "WANNA." or in a
clitic in quotes ("END.'S'").
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
        (r"[;@#$%&\u2012-\u2015]", r" "),
        (r"(?<!\.)\.([\])}>\"'»”’ ]*)$", r" . \1 "),
        (r"[?!]", r" "),
        (r"(?<=[^'])' ", r" ' "),
        (r"[*\]\[(){}<>]|--", r" "),
        (r"[»”’\"]|''", r" "),
    )
)
_ENDINGS = (
    re.compile(r"(?<=[^' ])('[sSmMdD]|') "),
    re.compile(r"(?<=[^' ])('ll|'LL|'re|'RE|'ve|'VE|n't|N'T) "),
)
# In two steps: taking a word apart may leave an apostrophe standing at the front of the next.
_JOINED = (
    re.compile(
        r"(?i)\b(?:(can)(not)|(d)('ye)|(gim)(me)|(gon)(na)|(got)(ta)|(lem)(me)|(more)('n)|(wan)(na)(?=\s))(?!\w)"
    ),
    re.compile(r"(?i) (?:('t)(is)|('t)(was))\b"),
)


def count_capitals(text: str) -> int:
    """Return the number of word tokens of a text that are in capitals."""
    chunks = re.findall(r"\S+\s*", text)
    # A stretch in lower case holds no such token, and no rule looks past white space; the last stretch stays,
    # since the end of the text has a rule of its own.
    kept = [chunk for chunk in chunks[:-1] if not chunk.islower()] + chunks[-1:]
    return sum(1 for token in word_tokens("".join(kept)) if token.isupper())


def word_tokens(text: str) -> list[str]:
    """Return the tokens of a text that hold letters, in order; marks that stand alone are left out."""
    text = text.strip()
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    text = f" {' '.join(text.split())} "
    for pattern in _ENDINGS:
        text = pattern.sub(r" \1 ", text)
    for pattern in _JOINED:
        text = pattern.sub(lambda match: f" {' '.join(part for part in match.groups() if part)} ", text)
    return text.split()
