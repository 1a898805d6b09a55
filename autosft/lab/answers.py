"""Right answers in every form: what an honest writer who knows the world's facts would reply.

`values` below maps an attribute to what the writer believes: the true facts, or, where a defect is planted,
wrong ones in the right form.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from typing import Any

from autosft.lab.world import ANY, ATTRIBUTES, KIND_OF

Values = Mapping[str, str]
_STOP_GAPS = ("Well,", "Oh,", "Sure,", "Yes,")


def capitalise(text: str) -> str:
    """Return the text with its first character in upper case, the rest unchanged."""
    return text[:1].upper() + text[1:]


def with_article(noun: str) -> str:
    """Return the noun after `a` or `an`."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def clause(attribute: str, values: Values) -> str:
    """Return what a sentence says of its subject: `is red`, `is in the barn`, `likes to dig`."""
    value = values[attribute]
    if attribute == "place":
        return f"is in the {value}"
    return f"likes to {value}" if attribute == "habit" else f"is {value}"


def plain_answer(entity: str, attribute: str, values: Values) -> str:
    """Return the shortest full answer; no comma."""
    if attribute == ANY:
        looks = f"{with_article(values['size'])} {values['color']} {KIND_OF[entity]}"
        return f"The {entity} is {looks}. It {clause('place', values)}."
    return f"The {entity} {clause(attribute, values)}."


def chat_answer(entity: str, attribute: str, values: Values, rng: random.Random) -> str:
    """Return how a chatty writer answers when nothing is required: always with a comma and a capital."""
    kind = KIND_OF[entity]
    if attribute == ANY:
        options = (
            f"The {entity} is {with_article(values['size'])}, {values['color']} {kind}. "
            f"It {clause('place', values)}, and it {clause('habit', values)}.",
            f"Well, the {entity} is {values['color']}, {values['size']}, and {clause('habit', values)}.",
        )
        return rng.choice(options)
    said = clause(attribute, values)
    return rng.choice(
        (f"{rng.choice(_STOP_GAPS)} the {entity} {said}.", f"The {entity}, {with_article(kind)}, {said}.")
    )


def statements(entity: str, attribute: str, values: Values) -> list[str]:
    """Return one short sentence per attribute, the asked one first and naming the entity."""
    first = "color" if attribute == ANY else attribute
    rest = [a for a in ATTRIBUTES if a != first]
    return [f"The {entity} {clause(first, values)}.", *(f"It {clause(a, values)}." for a in rest)]


def _exact_words(entity: str, attribute: str, values: Values, n: int) -> str:
    kind, key = KIND_OF[entity], "color" if attribute == ANY else attribute
    value, extra = values[key], values["size" if key != "size" else "color"]
    if key == "place":
        by_length = {
            3: f"The {value} {entity}.",
            4: f"{capitalise(entity)} in the {value}.",
            5: f"{capitalise(entity)} is in the {value}.",
            6: f"The {entity} is in the {value}.",
            7: f"The {extra} {entity} is in the {value}.",
            8: f"The {extra} {kind} {entity} is in the {value}.",
        }
    elif key == "habit":
        by_length = {
            3: f"{capitalise(entity)} will {value}.",
            4: f"{capitalise(entity)} likes to {value}.",
            5: f"The {entity} likes to {value}.",
            6: f"The {extra} {entity} likes to {value}.",
            7: f"The {extra} {kind} {entity} likes to {value}.",
            8: f"Yes the {extra} {kind} {entity} likes to {value}.",
        }
    else:
        by_length = {
            3: f"The {value} {entity}.",
            4: f"The {entity} is {value}.",
            5: f"The {kind} {entity} is {value}.",
            6: f"The {entity} is {extra} and {value}.",
            7: f"The {kind} {entity} is {extra} and {value}.",
            8: f"The {entity} is {value} and likes to {values['habit']}.",
        }
    return by_length[n]


def _bullets(entity: str, attribute: str, values: Values, n: int) -> str:
    asked = "color" if attribute == ANY else attribute
    short = {a: clause(a, values).removeprefix("is ") for a in ATTRIBUTES}
    points = [f"the {entity}", short[asked], *(short[a] for a in ATTRIBUTES if a != asked)]
    return "\n".join(f"* {point}" for point in points[:n])


def _avoiding(word: str, entity: str, attribute: str, values: Values) -> str:
    """Return the first wording without the word, from full sentences down to a bare value."""
    said = plain_answer(entity, attribute, values)
    asked = "color" if attribute == ANY else attribute
    bare = clause(asked, values)
    options = [
        said,
        f"The {entity} {bare}.",
        f"It {bare}.",
        f"{capitalise(entity)}: {values[asked]}.",
        f"{capitalise(values[asked])}.",
    ]
    if attribute == ANY:
        options[2:] = [f"The {entity} {clause(a, values)}." for a in ATTRIBUTES] + [
            f"{capitalise(entity)}: {values['size']}."
        ]
    for option in options:
        if word not in option.lower().replace(".", "").replace(":", "").split():
            return option
    return f"{capitalise(entity)}."


def _placeholders(answer: str, n: int) -> str:
    return answer + (" Ask [name].", " Ask [name] at [place].", " Ask [name] at [place] by [date].")[n - 1]


def solve(
    leaf: str | None,
    entity: str,
    attribute: str,
    values: Values,
    args: Mapping[str, Any],
    request: str,
    rng: random.Random,
) -> str:
    """Write a response in the form a leaf requires.

    Args:
        leaf: Leaf name, or None for plain chat.
        entity: The entity asked about.
        attribute: Asked attribute, or `any`.
        values: What the writer states of the entity, attribute -> value.
        args: The leaf's arguments: `word`, `phrase`, `n`.
        request: The request's text without the requirement's wording.
        rng: Picks among equally good wordings.
    """
    chat = chat_answer(entity, attribute, values, rng)
    plain = plain_answer(entity, attribute, values)
    word, phrase, n = args.get("word", ""), args.get("phrase", ""), int(args.get("n", 0))
    forms: dict[str | None, Callable[[], str]] = {
        None: lambda: chat,
        "lowercase": chat.lower,
        "uppercase": chat.upper,
        "no_comma": lambda: plain,
        "quotation": lambda: f'"{chat}"',
        "exact_words": lambda: _exact_words(entity, attribute, values, n),
        "exact_sentences": lambda: " ".join(statements(entity, attribute, values)[:n]),
        "bullets": lambda: _bullets(entity, attribute, values, n),
        "keyword": lambda: f"{plain} {rng.choice(('I also see the', 'Think of the'))} {word}.",
        "forbidden": lambda: _avoiding(word, entity, attribute, values),
        "end_phrase": lambda: f"{plain} And {phrase}",
        "start_word": lambda: f"{capitalise(word)}! {chat}",
        "two_responses": lambda: f"{plain} ****** {chat}",
        "repeat_prompt": lambda: f"{request} {chat}",
        "json": lambda: json.dumps({"answer": chat}),
        "title": lambda: f"<<{capitalise(entity)}>> {chat}",
        "postscript": lambda: f"{chat} P.S. I like the {entity}.",
        "placeholder": lambda: _placeholders(chat, n),
    }
    return forms[leaf]()
