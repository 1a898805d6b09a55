"""Mechanical edits, one a requirement: the smallest changes that could make a response meet it.

An edit yields candidates, best first. None is trusted: the caller verifies each.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from autosft.actions.repair._text import (
    append,
    capitalise,
    groups,
    inside,
    plainer,
    sentences,
    tidy,
    without_commas,
)

Edit = Callable[[str, str, Mapping[str, Any]], Iterator[str]]
_STOPWORDS = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "at",
        "be",
        "do",
        "for",
        "from",
        "how",
        "in",
        "is",
        "it",
        "of",
        "on",
        "or",
        "that",
        "the",
        "this",
        "to",
        "was",
        "what",
        "where",
        "which",
        "who",
        "you",
        "your",
    ]
)
_PLACES = ("name", "place", "date", "time", "address", "title", "email", "phone", "city", "company")


def _lower(prompt: str, text: str, kwargs: Mapping[str, Any]) -> Iterator[str]:
    yield text.lower()


def _upper(prompt: str, text: str, kwargs: Mapping[str, Any]) -> Iterator[str]:
    yield text.upper()


def _no_comma(prompt: str, text: str, kwargs: Mapping[str, Any]) -> Iterator[str]:
    yield from plainer(text)
    yield inside(text, without_commas)
    yield without_commas(text)


def _quotation(prompt: str, text: str, kwargs: Mapping[str, Any]) -> Iterator[str]:
    yield '"' + text.strip().strip('"') + '"'


def _json(prompt: str, text: str, kwargs: Mapping[str, Any]) -> Iterator[str]:
    yield json.dumps({"answer": text.strip()}, ensure_ascii=False)


def _title(prompt: str, text: str, kwargs: Mapping[str, Any]) -> Iterator[str]:
    said = {word.lower() for word in re.findall(r"\w+", text)}
    words = [w for w in re.findall(r"\w+", sentences(prompt)[0] if prompt.strip() else "") if len(w) > 2]
    shared = [w for w in words if w.lower() in said and w.lower() not in _STOPWORDS]
    title = capitalise(shared[-1] if shared else "Answer")
    yield f"<<{title}>>\n\n{text}" if "\n" in text else f"<<{title}>> {text}"


def _postscript(prompt: str, text: str, kwargs: Mapping[str, Any]) -> Iterator[str]:
    marker = str(kwargs.get("postscript_marker", "P.S.")).strip()
    yield inside(text, lambda body: append(body, f"{marker} Thank you for asking."))


def _placeholders(prompt: str, text: str, kwargs: Mapping[str, Any]) -> Iterator[str]:
    present = re.findall(r"\[([^\]]*)\]", text)
    lacking = int(kwargs["num_placeholders"]) - len(present)
    names = [p for p in _PLACES if p not in present]
    names += [f"detail {k}" for k in range(1, max(0, lacking - len(names)) + 1)]
    asked = " and ".join(f"[{name}]" for name in names[: max(0, lacking)])
    yield inside(text, lambda body: append(body, f"Ask {asked}."))


def _keywords(prompt: str, text: str, kwargs: Mapping[str, Any]) -> Iterator[str]:
    lacking = [w for w in map(str, kwargs["keywords"]) if not re.search(re.escape(w), text, re.IGNORECASE)]
    yield inside(text, lambda body: _each(body, [f"Think of the {word}." for word in lacking]))


def _each(text: str, added: Sequence[str]) -> str:
    for sentence in added:
        text = append(text, sentence)
    return text


def _frequency(prompt: str, text: str, kwargs: Mapping[str, Any]) -> Iterator[str]:
    word, wanted = str(kwargs["keyword"]).strip(), int(kwargs["frequency"])
    found = len(re.findall(re.escape(word), text, re.IGNORECASE))
    if kwargs["relation"] == "at least":
        yield inside(text, lambda body: _each(body, [f"Think of the {word}."] * (wanted - found)))
    else:
        yield tidy(_cut_words(text, [word], keep=max(0, wanted - 1)))


def _forbidden(prompt: str, text: str, kwargs: Mapping[str, Any]) -> Iterator[str]:
    words = [str(w) for w in kwargs["forbidden_words"]]
    pattern = re.compile("|".join(rf"\b{re.escape(w)}\b" for w in words), re.IGNORECASE)
    clean = [s for s in sentences(text) if not pattern.search(s)]
    if clean:
        yield " ".join(clean)
    yield from plainer(text)
    yield inside(text, lambda body: tidy(_cut_words(body, words)))


def _cut_words(text: str, words: Sequence[str], keep: int = 0) -> str:
    """Remove words (with a comma after them), except their first `keep` occurrences."""
    pattern = "|".join(rf"\b{re.escape(w)}\b,?|{re.escape(w)}" for w in words)
    count = 0

    def cut(match: re.Match[str]) -> str:
        nonlocal count
        count += 1
        return match.group() if count <= keep else ""

    return re.sub(pattern, cut, text, flags=re.IGNORECASE)


def _start_word(prompt: str, text: str, kwargs: Mapping[str, Any]) -> Iterator[str]:
    yield inside(text, lambda body: f"{capitalise(str(kwargs['word']).strip())}! {body.lstrip()}")


def _end_phrase(prompt: str, text: str, kwargs: Mapping[str, Any]) -> Iterator[str]:
    phrase = str(kwargs["end_phrase"]).strip()
    yield inside(text, lambda body: append(body, capitalise(phrase)))
    yield append(text, phrase)


def _repeat_prompt(prompt: str, text: str, kwargs: Mapping[str, Any]) -> Iterator[str]:
    yield f"{str(kwargs['prompt_to_repeat']).strip()} {text.lstrip()}"


def _two_responses(prompt: str, text: str, kwargs: Mapping[str, Any]) -> Iterator[str]:
    body = " ".join(text.replace("******", " ").split()) if "******" in text else text.strip()
    for other in (*plainer(body), *sentences(body)[:1], f"In short: {body}"):
        if other != body:
            yield f"{other} ****** {body}"


def _bullets(prompt: str, text: str, kwargs: Mapping[str, Any]) -> Iterator[str]:
    n = int(kwargs["num_bullets"])
    parts = [re.sub(r"^\s*[*-]\s+", "", part) for part in sentences(text)]
    clauses = [
        p.strip() for part in parts for p in re.split(r",\s+(?:and\s+)?|\s+and\s+|;\s+", part) if p.strip()
    ]
    for pieces in (parts, clauses):
        dealt = groups(pieces, n)
        if dealt is not None:
            yield "\n".join("* " + " ".join(group) for group in dealt)


def _highlights(prompt: str, text: str, kwargs: Mapping[str, Any]) -> Iterator[str]:
    n, parts = int(kwargs["num_highlights"]), sentences(text.replace("*", ""))
    if len(parts) >= n:
        yield " ".join(f"*{part}*" if k < n else part for k, part in enumerate(parts))
    words = text.replace("*", "").split()
    if len(words) >= n:
        yield " ".join(f"*{word}*" if k < n else word for k, word in enumerate(words))


def _sections(prompt: str, text: str, kwargs: Mapping[str, Any]) -> Iterator[str]:
    dealt = groups(sentences(text), int(kwargs["num_sections"]))
    if dealt is not None:
        marker = str(kwargs["section_spliter"]).strip()
        yield "\n\n".join(f"{marker} {k}\n{' '.join(group)}" for k, group in enumerate(dealt, start=1))


def _paragraphs(prompt: str, text: str, kwargs: Mapping[str, Any]) -> Iterator[str]:
    dealt = groups(sentences(text.replace("***", "\n")), int(kwargs["num_paragraphs"]))
    if dealt is not None:
        yield "\n\n***\n\n".join(" ".join(group) for group in dealt)


def _first_word(prompt: str, text: str, kwargs: Mapping[str, Any]) -> Iterator[str]:
    dealt = groups(sentences(text), int(kwargs["num_paragraphs"]))
    nth = int(kwargs["nth_paragraph"])
    if dealt is not None and 1 <= nth <= len(dealt):
        parts = [" ".join(group) for group in dealt]
        for mark in (",", "!"):
            opened = f"{capitalise(str(kwargs['first_word']))}{mark} {parts[nth - 1]}"
            yield "\n\n".join([*parts[: nth - 1], opened, *parts[nth:]])


def _fewer_words(prompt: str, text: str, kwargs: Mapping[str, Any]) -> Iterator[str]:
    if kwargs["relation"] != "less than":
        return
    parts = sentences(text)
    for kept in range(len(parts) - 1, 0, -1):
        yield " ".join(parts[:kept])


def _constrained(prompt: str, text: str, kwargs: Mapping[str, Any]) -> Iterator[str]:
    first = re.match(r"\W*(yes|no|maybe)\b", text, re.IGNORECASE)
    if first:
        yield f"My answer is {first.group(1).lower()}."


def _capital_words(prompt: str, text: str, kwargs: Mapping[str, Any]) -> Iterator[str]:
    wanted, words = int(kwargs["capital_frequency"]), re.split(r"(\s+)", text)
    raised = [k for k, word in enumerate(words) if word.isupper()]
    if kwargs["capital_relation"] == "less than":
        lowered = set(raised[max(0, wanted - 1) :])
        yield "".join(word.capitalize() if k in lowered else word for k, word in enumerate(words))
        return
    plain = [k for k, word in enumerate(words) if any(c.isalpha() for c in word) and not word.isupper()]
    chosen = set(plain[: max(0, wanted - len(raised))])
    yield "".join(word.upper() if k in chosen else word for k, word in enumerate(words))


def _exact_words(prompt: str, text: str, kwargs: Mapping[str, Any]) -> Iterator[str]:
    n = int(kwargs["n"])
    shorter = [text, *plainer(text), *sentences(text)]
    shorter += [option for s in sentences(text) for option in plainer(s)]
    for option in dict.fromkeys(shorter):
        words = option.split()
        yield option
        if len(words) + 1 == n:
            yield f"Yes {words[0][:1].lower()}{' '.join(words)[1:]}"
        for size in (1, 2):
            # One or two words next to each other are left out, never the last one.
            if len(words) - size == n:
                for at in range(len(words) - size):
                    yield capitalise(" ".join(words[:at] + words[at + size :]))


def _exact_sentences(prompt: str, text: str, kwargs: Mapping[str, Any]) -> Iterator[str]:
    n, parts = int(kwargs["n"]), sentences(text)
    if len(parts) > n:
        yield " ".join(parts[:n])
        yield " ".join(parts[-n:])
        return
    split = [p for part in parts for p in re.split(r",\s+and\s+(?=(?:it|he|she|they)\b)", part)]
    yield " ".join(p if p[-1:] in ".!?" else f"{p}." for p in map(capitalise, split))


def _sentence_number(prompt: str, text: str, kwargs: Mapping[str, Any]) -> Iterator[str]:
    if kwargs["relation"] == "less than":
        yield from _fewer_words(prompt, text, kwargs)
        return
    split = [p for s in sentences(text) for p in re.split(r";\s+|,\s+and\s+(?=(?:it|he|she|they|we|I)\b)", s)]
    yield " ".join(p if p[-1:] in ".!?" else f"{p}." for p in map(capitalise, split))


def _word_lines(prompt: str, text: str, kwargs: Mapping[str, Any]) -> Iterator[str]:
    yield "\n".join(text.split())


def _no_whitespace(prompt: str, text: str, kwargs: Mapping[str, Any]) -> Iterator[str]:
    yield "".join(text.split())


def _title_case(prompt: str, text: str, kwargs: Mapping[str, Any]) -> Iterator[str]:
    yield re.sub(r"\S+", lambda word: word.group().capitalize(), text)
    yield text.title()


def _indent(prompt: str, text: str, kwargs: Mapping[str, Any]) -> Iterator[str]:
    yield "\n".join(" " * k + line for k, line in enumerate(sentences(text)))


def _emoji(prompt: str, text: str, kwargs: Mapping[str, Any]) -> Iterator[str]:
    yield " ".join(f"{s} \U0001f642" for s in sentences(text))


def _thesis(prompt: str, text: str, kwargs: Mapping[str, Any]) -> Iterator[str]:
    first, *rest = sentences(text) or [""]
    if rest:
        yield f"<i>{first}</i> {' '.join(rest)}"


def _sentences_then_bullets(prompt: str, text: str, kwargs: Mapping[str, Any]) -> Iterator[str]:
    parts = [re.sub(r"^\s*[*-]\s+", "", part) for part in sentences(text)]
    if len(parts) >= 4:
        yield "\n".join([" ".join(parts[:2]), *(f"* {part}" for part in parts[2:])])


EDITS: dict[str, Edit] = {
    # The order is that of application: words first, then structure, then form of the whole text.
    "keywords:forbidden_words": _forbidden,
    "length_constraints:number_words": _fewer_words,
    "length_constraints:number_sentences": _sentence_number,
    "lab:exact_words": _exact_words,
    "lab:exact_sentences": _exact_sentences,
    "detectable_format:constrained_response": _constrained,
    "keywords:existence": _keywords,
    "keywords:frequency": _frequency,
    "detectable_content:number_placeholders": _placeholders,
    "length_constraints:number_paragraphs": _paragraphs,
    "length_constraints:nth_paragraph_first_word": _first_word,
    "detectable_format:number_bullet_lists": _bullets,
    "detectable_format:multiple_sections": _sections,
    "detectable_format:number_highlighted_sections": _highlights,
    "format:no_bullets_bullets": _sentences_then_bullets,
    "format:thesis": _thesis,
    "format:emoji": _emoji,
    "format:line_indent": _indent,
    "combination:two_responses": _two_responses,
    "detectable_format:title": _title,
    "lab:start_word": _start_word,
    "detectable_content:postscript": _postscript,
    "startend:end_checker": _end_phrase,
    "combination:repeat_prompt": _repeat_prompt,
    "punctuation:no_comma": _no_comma,
    "change_case:english_lowercase": _lower,
    "change_case:english_capital": _upper,
    "lab:lowercase": _lower,
    "lab:uppercase": _upper,
    "change_case:capital_word_frequency": _capital_words,
    "format:title_case": _title_case,
    "format:newline": _word_lines,
    "format:no_whitespace": _no_whitespace,
    "detectable_format:json_format": _json,
    "startend:quotation": _quotation,
}
