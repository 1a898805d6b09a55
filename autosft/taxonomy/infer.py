"""Requirements that a prompt states in words, read off for rows that carry none.

Rules follow the phrasings of IFEval's prompts (arXiv:2311.07911). They are made for precision: a requirement
that is read wrongly would prune or mend sound rows, one that is missed only leaves a row unjudged. Measured
figures are in docs/evaluation.md; `python -m tests.taxonomy.measured_inference` prints them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from autosft.taxonomy.infer_words import (
    LANGUAGES,
    NUMBER,
    QUOTED,
    amount,
    number_of,
    sentences_of,
    split_list,
)
from autosft.taxonomy.supply import Labelled as Annotated
from autosft.types import Requirement

Found = tuple[str, dict[str, Any]]
Reader = Callable[[str], Iterator[Found]]
_I = re.IGNORECASE
_SENSE = "at least|at most|less than|fewer than|more than|no more than"
# Words that follow 'word' in a sentence about words.
_NO_KEYWORDS = frozenset(
    {"should", "must", "with", "count", "in", "for", "and", "or", "of", "which", "that", "to"}
)
_NOT = (
    r"(?:do(?:es)? ?n[o']t|don[’']t|not|never|without|avoid(?:ing)?|refrain(?:ing)? from|no|must not|cannot)"
)


_IN_CAPITALS = re.compile(
    r"(?: or phrases)?(?: in the \w+ should)?(?: be)?,? (?:in|with|of) (?:all )?(?:capital|caps|upper)", _I
)


def infer_requirements(prompt: str) -> tuple[Requirement, ...]:
    """Return the requirements that a prompt states, each once, in the order of `READERS`.

    Args:
        prompt: Text of a user turn; any text.
    """
    found: dict[str, Requirement] = {}
    for reader in READERS:
        for key, kwargs in reader(prompt):
            requirement = Requirement(key, kwargs)
            found.setdefault(f"{key} {sorted(kwargs.items(), key=str)}", requirement)
    return tuple(found.values())


def _plain(key: str, *patterns: str) -> Reader:
    """A requirement without arguments, stated by any of the patterns."""
    compiled = [re.compile(pattern, _I) for pattern in patterns]

    def read(prompt: str) -> Iterator[Found]:
        if any(pattern.search(prompt) for pattern in compiled):
            yield key, {}

    return read


def _first_number(key: str, name: str, *patterns: str) -> Reader:
    """A requirement with one number, in the group `n`; the first pattern that fits decides."""
    compiled = [re.compile(pattern, _I) for pattern in patterns]

    def read(prompt: str) -> Iterator[Found]:
        for pattern in compiled:
            match = pattern.search(prompt)
            if match is not None and (n := number_of(match["n"])) is not None:
                yield key, {name: n}
                return

    return read


def _counted(key: str, unit: str, number: str, relation: str) -> Reader:
    """A number of units with a relation, such as 'at least 300 words'."""
    what = re.compile(
        rf"(?P<before>[\w ,'’-]{{0,40}}?)\b(?P<n>{NUMBER})(?P<plus>\+)?"
        rf"(?P<after> or more| or fewer| or less)?[ -]{unit}\b",
        _I,
    )

    def read(prompt: str) -> Iterator[Found]:
        for match in what.finditer(prompt):
            n = number_of(match["n"])
            if n is None or _IN_CAPITALS.match(prompt, match.end()):
                continue
            sense = amount(match["before"], (match["plus"] or "") + (match["after"] or ""), n)
            if sense is not None:
                yield key, {number: sense[1], relation: sense[0]}

    return read


def _repeated_word(prompt: str) -> Iterator[Found]:
    """'the word X at least N times', 'mention X fewer than N times'."""
    times = re.compile(
        rf"\b(?:word|keyword)s?,? (?:of )?(?:{QUOTED}|(?P<bare>[\w-]+))[^.;\n]{{0,40}}?"
        rf"(?P<sense>at least|at most|less than|fewer than|more than|no more than|exactly|for|minimum of)? ?"
        rf"(?P<n>{NUMBER}|once|twice)(?P<plus>\+)?(?P<after> or more)?(?: times?)?\b",
        _I,
    )
    for sentence in sentences_of(prompt):
        for match in times.finditer(sentence):
            word = next((g for g in (match["q1"], match["q2"], match["bare"]) if g), "")
            tail = match["after"] or match["plus"] or ""
            if not re.search(r"\btimes?\b|\bonce\b|\btwice\b", match.group(0), _I) or not word:
                continue
            n = number_of(match["n"])
            sense = amount(match["sense"] or "", tail, n) if n is not None else None
            if sense is not None and word.lower() not in _NO_KEYWORDS:
                relation, threshold = sense
                yield "keywords:frequency", {"keyword": word, "frequency": threshold, "relation": relation}


def _letters(prompt: str) -> Iterator[Found]:
    """'the letter c should appear at least N times'."""
    pattern = re.compile(
        rf"\bletter[s]? [\"'“]?(?P<letter>[a-z])[\"'”]?\b[^.\n]{{0,60}}?\b"
        rf"(?P<sense>{_SENSE}) (?P<n>{NUMBER}|once|twice)\b",
        _I,
    )
    for match in pattern.finditer(prompt):
        n = number_of(match["n"])
        sense = amount(match["sense"], "", n) if n is not None else None
        if sense is not None:
            yield (
                "keywords:letter_frequency",
                {"letter": match["letter"].lower(), "let_frequency": sense[1], "let_relation": sense[0]},
            )


def _keywords(prompt: str) -> Iterator[Found]:
    """'include the keywords a, b and c'; of forbidden ones, 'do not use the words a, b'."""
    pattern = re.compile(
        r"(?P<head>[^.!?\n]{0,80}?)\b(?P<verb>us(?:e|ing)|say(?:ing)?|includ(?:e|ing)|contain(?:s|ing)?|"
        r"mention(?:ing)?|have|with|word|words|keywords?)\b (?:any of |all of )?"
        r"(?:the |these |following |specific )*"
        r"(?:key ?words?|words?)(?: of)?:? (?P<list>[^\n]+)",
        _I,
    )
    for sentence in sentences_of(prompt):
        match = pattern.search(sentence)
        if match is None or re.search(r"\b(?:start|begin)\w*\b", match["head"] + match["verb"], _I):
            continue
        if re.search(r"\btimes?\b|\bonce\b|\btwice\b|\bcapital", sentence, _I):
            continue
        words = split_list(match["list"])
        if not words:
            continue
        if re.search(rf"\b{_NOT}\b", match["head"], _I):
            yield "keywords:forbidden_words", {"forbidden_words": words}
        elif match["verb"].lower().startswith(("us", "includ", "contain", "mention", "have", "with")):
            yield "keywords:existence", {"keywords": words}
    banned = re.compile(
        rf"\bword[s]? {QUOTED}[^.\n]{{0,20}}\b(?:should|must|can) ?not\b[^.\n]* (?:appear|be)", _I
    )
    for match in banned.finditer(prompt):
        yield "keywords:forbidden_words", {"forbidden_words": [match["q1"] or match["q2"]]}


def _end_phrase(prompt: str) -> Iterator[Found]:
    pattern = re.compile(
        r"\b(?:finish|end(?:ed|s|ing)?|conclude|last sentence|very end|last (?:line|words?))\b[^\"“\n]{0,80}?"
        r"(?:phrase|sentence|with|read|be|words?|line)[^\"“\n]{0,30}?[\"“](?P<phrase>[^\"”\n]{3,200})[\"”]",
        _I,
    )
    for match in pattern.finditer(prompt):
        if not re.search(r"\bpost ?script|\bP\.", match.group(0)):
            yield "startend:end_checker", {"end_phrase": match["phrase"]}
            return


def _language(prompt: str) -> Iterator[Found]:
    names = "|".join(LANGUAGES)
    only = re.compile(
        rf"(?:\b(?:only|entirely|entire|completely|just|all)\b[^.\n]{{0,60}}"
        rf"\b(?:in|the) (?:the )?(?P<a>{names})\b"
        rf"|\b(?P<b>{names})\b(?: language)?[^.\n]{{0,40}}\bno other language|\bin (?P<c>{names}) only\b)",
        _I,
    )
    for match in only.finditer(prompt):
        name = (match["a"] or match["b"] or match["c"]).lower()
        if name != "english":
            yield "language:response_language", {"language": LANGUAGES[name]}
            return


def _sections(prompt: str) -> Iterator[Found]:
    mark = re.search(
        r"[\"'“]?\b(?P<name>section|paragraph|part|chapter|audience|sketch|day|round|SECTION) X\b", prompt, _I
    )
    if mark is None:
        return
    count = re.search(
        rf"\b(?P<n>{NUMBER})[ -](?:\w+ ){{0,2}}(?:sections?|paragraphs?|parts?|chapters?)\b", prompt, _I
    )
    n = number_of(count["n"]) if count else None
    if n is not None:
        yield "detectable_format:multiple_sections", {"section_spliter": mark["name"], "num_sections": n}


def _postscript(prompt: str) -> Iterator[Found]:
    match = re.search(
        r"(?:post ?script|\badd(?:ing)?\b|\bwith\b|starting with)[^\n]{0,60}?\b(?P<m>P\.P\.S|P\.S\.)",
        prompt,
        _I,
    )
    if match is not None:
        yield "detectable_content:postscript", {"postscript_marker": match["m"].upper()}


def _capitals(prompt: str) -> Iterator[Found]:
    pattern = re.compile(
        rf"\b(?:all[ -]capital(?:ized)?(?: letters)?|capital letters|all caps|capitalized)\b[^.\n]{{0,70}}?"
        rf"(?P<sense>{_SENSE}) (?P<n>{NUMBER}|once|twice)\b",
        _I,
    )
    for match in pattern.finditer(prompt):
        n = number_of(match["n"])
        sense = amount(match["sense"], "", n) if n is not None else None
        if sense is not None and not re.search(r"\bletter [\"']?[a-z]\b", match.group(0), _I):
            yield (
                "change_case:capital_word_frequency",
                {"capital_frequency": sense[1], "capital_relation": sense[0]},
            )


def _counted_capitals(prompt: str) -> Iterator[Found]:
    """'at least 3 words in all capital letters'."""
    pattern = re.compile(rf"(?P<before>[\w ,]{{0,30}}?)\b(?P<n>{NUMBER}) words?\b", _I)
    for match in pattern.finditer(prompt):
        n = number_of(match["n"])
        sense = amount(match["before"], "", n) if n is not None else None
        if sense is not None and _IN_CAPITALS.match(prompt, match.end()):
            yield (
                "change_case:capital_word_frequency",
                {"capital_frequency": sense[1], "capital_relation": sense[0]},
            )


def _all_capitals(prompt: str) -> Iterator[Found]:
    """Everything in capitals; 'words in all capital letters at least 3 times' is another requirement."""
    whole = re.compile(
        r"\b(?:in|use|using|only use)? ?(?:English,? (?:and )?)?(?:in )?(?:all|only)[ -]"
        r"(?:capital letters|capitals|caps|upper ?case)\b(?P<after>[^.\n]{0,60})",
        _I,
    )
    if re.search(r"\bno lower ?case letters\b|\bonly (?:use )?capital letters\b", prompt, _I):
        yield "change_case:english_capital", {}
        return
    for match in whole.finditer(prompt):
        before = prompt[max(0, match.start() - 40) : match.start()]
        counted = re.search(r"\b(?:words?|phrases|title|name|sentence)\b[^.,\n]{0,26}$", before, _I)
        if not counted and not re.search(r"\btimes?\b|\bless than\b|\bat least\b", match["after"], _I):
            yield "change_case:english_capital", {}
            return


def _repeat_prompt(prompt: str) -> Iterator[Found]:
    """The request that is to be repeated is what stands before the sentence that asks for it."""
    asked = re.search(
        r"(?:^|(?<=[.!?\n\"”*])\s*)[^.!?\n]{0,60}\brepeat (?:the|this|my)(?: \w+){0,3} "
        r"(?:request|sentence|prompt|question)[^.\n]{0,40}"
        r"(?:word for word|above|exactly|first|without change|before)",
        prompt,
        _I,
    )
    if asked is not None and prompt[: asked.start()].strip():
        yield "combination:repeat_prompt", {"prompt_to_repeat": prompt[: asked.start()].strip()}


def _nth_paragraph(prompt: str) -> Iterator[Found]:
    """'exactly 4 paragraphs ... two new lines ... the second paragraph must start with the word X'."""
    if not re.search(
        r"\b(?:two|2) (?:new ?lines|line ?breaks)|double (?:line ?breaks?|new ?lines?)|\\n\\n", prompt, _I
    ):
        return
    count = re.search(rf"\b(?P<n>{NUMBER})[ -](?:\w+ )?paragraphs?\b", prompt, _I)
    start = re.search(
        r"\b(?:(?P<nth>first|second|third|fourth|fifth|sixth|last)|paragraph (?P<n>\d+)"
        r"|(?P<d>\d)(?:st|nd|rd|th))"
        r"(?: paragraph)?[^.\n]{0,40}?\b(?:start|begin)\w* with (?:the )?(?:word )?[\"“']?(?P<word>[\w-]+)",
        prompt,
        _I,
    )
    total = number_of(count["n"]) if count else None
    if start is None or total is None:
        return
    order = ["first", "second", "third", "fourth", "fifth", "sixth"]
    name = (start["nth"] or "").lower()
    at = total if name == "last" else order.index(name) + 1 if name else int(start["n"] or start["d"])
    yield (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": total, "nth_paragraph": at, "first_word": start["word"].lower()},
    )


READERS: tuple[Reader, ...] = (
    _plain(
        "punctuation:no_comma",
        rf"\b{_NOT}\b[^.;\n]{{0,40}}\bcommas?\b(?! separated)",
        r"\bcommas? (?:is|are) not allowed",
    ),
    _plain("detectable_format:title", r"\bdouble angular brackets", r"<<[^<>\n]{1,40}>>"),
    _plain(
        "change_case:english_lowercase",
        r"\b(?:all|only|entirely) (?:in )?(?:lower ?case|lower-case|small) ?(?:letters)?",
        r"\bno capital letters\b",
        r"\b(?:without|not use|avoid) (?:using |any )*capital letters\b",
        r"\ball lower ?case\b",
    ),
    _all_capitals,
    _plain(
        "startend:quotation",
        r"\b(?:wrap|put|enclose|surround|double quot\w+ mark\w* around)\w*\b[^.\n]{0,70}\bdouble[- ]quot\w*",
        r"\bdouble[- ]quotations? marks? around (?:your|the) (?:entire|whole)",
        r"\b(?:entire|whole) (?:response|reply|answer|output|text|poem|article|story|letter|email)"
        r"[^.\n]{0,40}"
        r"(?:wrapped|enclosed|in|inside|within|contained)[^.\n]{0,20}\bdouble[- ]quot",
    ),
    _plain(
        "detectable_format:json_format",
        r"\b(?:in|as|using|use|wrap\w*[^.\n]{0,30}) (?:a |valid )?JSON\b",
        r"\bJSON (?:format|block|object)\b",
    ),
    _plain(
        "combination:two_responses",
        r"(?:6|six) (?:asterisks?|stars?)",
        r"\bseparated? (?:them |the \w+ )?(?:by|with) \*{6}(?!\*)",
    ),
    _plain("detectable_format:constrained_response", r"my answer is yes\.?[\s\S]{0,20}my answer is no\b"),
    _repeat_prompt,
    _first_number(
        "detectable_format:number_bullet_lists",
        "num_bullets",
        rf"\b(?:exactly|contain|include|with|have|use|write|provide) (?:exactly )?"
        rf"(?P<n>{NUMBER})(?: [\w-]+){{0,2}} bullet ?points?",
    ),
    _first_number(
        "detectable_format:number_highlighted_sections",
        "num_highlights",
        rf"\bhighlight\w*[^.\n]{{0,20}}\bat least (?P<n>{NUMBER})\b",
        rf"\bat least (?P<n>{NUMBER})(?: \w+){{0,2}} (?:sections?|parts?|phrases?)[^.\n]{{0,40}}\bhighlight",
        rf"\bhighlight (?P<n>{NUMBER})\b",
    ),
    _first_number(
        "detectable_content:number_placeholders",
        "num_placeholders",
        rf"\bat least (?P<n>{NUMBER}) (?:[\w-]+ ){{0,2}}place ?holders?",
    ),
    _first_number(
        "length_constraints:number_paragraphs",
        "num_paragraphs",
        rf"\b(?P<n>{NUMBER}) (?:\w+ )?(?:paragraphs?|sections?|parts?)\b"
        r"(?=[\s\S]{0,160}(?:markdown divider|\*\*\*(?!\*)|three asterisks|3 asterisk))",
    ),
    _counted("length_constraints:number_words", "words?", "num_words", "relation"),
    _counted("length_constraints:number_sentences", "sentences?", "num_sentences", "relation"),
    _repeated_word,
    _letters,
    _keywords,
    _end_phrase,
    _language,
    _sections,
    _postscript,
    _capitals,
    _counted_capitals,
    _nth_paragraph,
)


def annotate(pool: Annotated) -> Annotated:
    """Return the pool with inferred requirements on rows that have none; the rest is left alone."""
    rows = pool.rows()
    found = {
        index: requirements
        for index, row in enumerate(rows)
        if not row.requirements and (requirements := infer_requirements(row.prompt))
    }
    if not found:
        return pool
    changed = [replace(rows[index], requirements=requirements) for index, requirements in found.items()]
    return pool.replace(list(found), changed)
