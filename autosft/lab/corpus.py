"""Text the lab's base is pretrained on: facts, copying, recall, case and counting - skills, not obedience.

No document pairs an instruction with the behaviour it asks for: wordings of requirements occur only in
`_instruction_document`, beside requests and never beside an answer. What the base lacks is exactly what
supervised fine-tuning is to teach.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator

from autosft.lab.answers import capitalise, chat_answer, plain_answer, statements
from autosft.lab.phrasing import LEAVES, REQUESTS
from autosft.lab.tasks import leaf_args
from autosft.lab.world import ARGUMENT_WORDS, ENTITIES, FACTS, KINDS, VALUES

ALL_WORDS: tuple[str, ...] = (
    *ARGUMENT_WORDS,
    *ENTITIES,
    *KINDS,
    *(value for values in VALUES.values() for value in values),
)
_ASKED = tuple(REQUESTS)
_LEADS = (
    "It was about the word {w}.",
    "They talk of {w}.",
    "The word is {w}.",
    "We heard: {w}.",
    "A book on {w}.",
    'A sign says "{W}".',
    'Someone shouted "{W}".',
    'The letter has "{W}" in it.',
    "He wrote this: {w}.",
)
_ECHOES = (
    "I also see the {w}.",
    "Think of the {w}.",
    "{W}!",
    "And {w}",
    "P.S. I like the {w}.",
    "So, {w}.",
    "{W}! {s}",
    "{s} And {w}",
)


def _request(rng: random.Random) -> str:
    return rng.choice(REQUESTS[rng.choice(_ASKED)]).format(e=rng.choice(ENTITIES))


def _sentence(rng: random.Random, entity: str | None = None) -> str:
    who, asked = entity or rng.choice(ENTITIES), rng.choice(_ASKED)
    if rng.random() < 0.5:
        return plain_answer(who, asked, FACTS[who])
    return chat_answer(who, asked, FACTS[who], rng)


def _words(rng: random.Random, low: int, high: int) -> str:
    return " ".join(rng.choice(ALL_WORDS) for _ in range(rng.randint(low, high)))


def _fact_document(rng: random.Random) -> str:
    entity = rng.choice(ENTITIES)
    shape = rng.random()
    if shape < 0.4:
        return " ".join(_sentence(rng, entity) for _ in range(rng.randint(1, 3)))
    if shape < 0.7:
        told = statements(entity, rng.choice(_ASKED), FACTS[entity])
        return " ".join(told[: rng.randint(2, 4)])
    asked = rng.choice(_ASKED)
    question = rng.choice(REQUESTS[asked]).format(e=entity)
    return f"Question: {question} Answer: {plain_answer(entity, asked, FACTS[entity])}"


def _shape_document(rng: random.Random) -> str:
    entity, said = rng.choice(ENTITIES), _sentence(rng)
    values = FACTS[entity]
    key, word = rng.choice(("answer", "text", "name")), rng.choice(ALL_WORDS)
    points = [
        f"the {entity}",
        values["color"],
        values["size"],
        f"in the {values['place']}",
        f"likes to {values['habit']}",
        word,
    ]
    holes = ["[name]", "[place]", "[date]", "[number]"]
    shapes: tuple[Callable[[], str], ...] = (
        lambda: f"{said.upper()} {_sentence(rng).upper()}",
        lambda: f"{said.lower()} {_sentence(rng).lower()}",
        lambda: "\n".join(f"* {p}" for p in rng.sample(points, rng.randint(2, 5))),
        lambda: json.dumps({key: said}),
        lambda: f"<<{capitalise(word)}>> {said}",
        lambda: f"{said} ****** {_sentence(rng)}",
        lambda: f"{said} P.S. I like the {word}.",
        lambda: f'"{said}"',
        lambda: f"{said} Ask {rng.choice(holes)} at {rng.choice(holes)}.",
        lambda: f"{said} Ask {rng.choice(holes)}.",
    )
    return rng.choice(shapes)()


def _copy_document(rng: random.Random) -> str:
    shape, words = rng.random(), _words(rng, 1, 8)
    if shape < 0.3:
        parts = [words, words, capitalise(words) if rng.random() < 0.5 else words] + [words] * (
            rng.random() < 0.4
        )
        return rng.choice((" / ", " | ", ". ", ": ", "; ")).join(parts)
    if shape < 0.45:
        few, tag = _words(rng, 1, 3), rng.choice(("Note", "Key", "Name", "Word", "Phrase"))
        said = _sentence(rng)
        return (
            f"{tag}: {few}. {said} {rng.choice((f'{tag}: {few}.', f'{capitalise(few)}.', few, f'And {few}'))}"
        )
    if shape < 0.58:
        said = _sentence(rng)
        low, up = said.lower(), said.upper()
        return rng.choice(
            (f"{said} {said}", f"{said} = {low} = {up}", f"{low} = {said} = {up}", f"{up} = {said}")
        )
    if shape < 0.72:
        question = _request(rng)
        return rng.choice((f"{question} {question}", f"{question} / {question} {question}"))
    if shape < 0.88:
        forms = ("{w} {u}", "{u} {w}", "{w} {c}", "{c} {u}")
        return " ".join(rng.choice(forms).format(w=w, u=w.upper(), c=capitalise(w)) for w in words.split())
    pairs = [(key, rng.choice(ALL_WORDS)) for key in "ABC"]
    told, asked = pairs, rng.sample(pairs, 3)
    return " ".join(f"{key}: {value}." for key, value in [*told, *asked])


def _count_document(rng: random.Random) -> str:
    shape = rng.random()
    if shape < 0.4:
        n = rng.randint(1, 8)
        return f"{n} words: {_words(rng, n, n)}."
    if shape < 0.7:
        n = rng.randint(1, 5)
        return f"{n} items:\n" + "\n".join(f"* {rng.choice(ALL_WORDS)}" for _ in range(n))
    n, entity = rng.randint(1, 4), rng.choice(ENTITIES)
    return f"{n} sentences: " + " ".join(statements(entity, rng.choice(_ASKED), FACTS[entity])[:n])


def _topic_document(rng: random.Random) -> str:
    """A rare word seen early comes back later in an unrelated place, as words do in real text."""
    few, said = _words(rng, 1, rng.choice((1, 1, 2, 3))), _sentence(rng)
    lead = rng.choice(_LEADS).format(w=few, W=capitalise(few))
    echo = rng.choice(_ECHOES).format(w=few, W=capitalise(few), s=_sentence(rng))
    # The echo stands last where it ends without a full stop, so that both ways of stopping occur.
    shapes = (
        f"{lead} {said} {echo}",
        f"{said} {lead} {echo}",
        f"{lead} {echo}",
        f"{said} {lead} {_sentence(rng)} {echo}",
    )
    return rng.choice(shapes)


def _instruction_document(rng: random.Random) -> str:
    """Wordings and requests side by side, in either order, with no answer near them."""
    leaf = rng.choice(tuple(LEAVES.values()))
    args = leaf_args(leaf.name, rng.choice(ENTITIES), rng, held_words=rng.random() < 0.3)
    wording = rng.choice((*leaf.seen, *leaf.held)).format(**args, Word=capitalise(str(args.get("word", ""))))
    parts = [wording, _request(rng)]
    rng.shuffle(parts)
    return " ".join(parts)


_MIXTURE: tuple[tuple[float, Callable[[random.Random], str]], ...] = (
    (0.30, _topic_document),
    (0.28, _copy_document),
    (0.14, _fact_document),
    (0.14, _shape_document),
    (0.08, _count_document),
    (0.06, _instruction_document),
)
"""Share of documents -> generator. Copying and recall dominate: argument leaves cannot be taught without."""


def documents(seed: int) -> Iterator[str]:
    """Yield pretraining documents without end; equal seeds give equal streams."""
    rng = random.Random(f"lab-pretraining-{seed}")
    shares = [share for share, _ in _MIXTURE]
    makers = [maker for _, maker in _MIXTURE]
    while True:
        yield rng.choices(makers, shares)[0](rng)


def is_instruction(document: str) -> bool:
    """Return whether a document holds the fixed beginning of any requirement's wording."""
    return any(start in document for start in _WORDING_STARTS)


_WORDING_STARTS = tuple(
    wording.split("{")[0]
    for leaf in LEAVES.values()
    for wording in (*leaf.seen, *leaf.held)
    if wording.split("{")[0]
)
