"""Tasks of the lab: an entity, an asked attribute and at most one leaf's requirement, as prompt and checks.

Every (request template, entity) pair belongs to exactly one split, so no evaluation request is ever trained
on, and the dev and held-out suites never share a prompt.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from autosft.lab.answers import Values, capitalise, chat_answer, plain_answer, solve
from autosft.lab.phrasing import LEAVES, REQUESTS
from autosft.lab.world import ENTITIES, FACTS, HELD_OUT_WORDS, KIND_OF, TRAINING_WORDS, draw
from autosft.types import Requirement

Split = Literal["train", "dev", "held_out"]
# Six in ten requests are trained on; the rest are shared evenly by the two suites.
_SPLIT_SHARES: tuple[Split, ...] = ("train",) * 6 + ("dev",) * 2 + ("held_out",) * 2
_FORBIDDEN_IN_CHAT = ("well", "the", "is", "likes", "it", "in")
_RANGES = {"exact_words": (3, 8), "exact_sentences": (2, 4), "bullets": (2, 5), "placeholder": (1, 3)}


def split_of(attribute: str, template: int, entity: str) -> Split:
    """Return the split a request belongs to."""
    return draw(_SPLIT_SHARES, "split", attribute, str(template), entity)  # type: ignore[return-value]


@cache
def requests(split: Split) -> tuple[tuple[str, int, str], ...]:
    """Return every (attribute, template number, entity) of a split."""
    return tuple(
        (attribute, template, entity)
        for attribute, templates in REQUESTS.items()
        for template in range(len(templates))
        for entity in ENTITIES
        if split_of(attribute, template, entity) == split
    )


@dataclass(frozen=True, slots=True)
class Task:
    """One prompt of the lab with everything needed to answer and to judge it.

    Attributes:
        attribute: What is asked, or `any`.
        entity: Whom it is asked about.
        leaf: Leaf name, or None for plain chat.
        args: The leaf's arguments: `word`, `phrase`, `n`.
        request: The request's text.
        prompt: Request and requirement wording.
        held_wording: Whether the requirement is worded as only evaluation words it.
    """

    attribute: str
    entity: str
    leaf: str | None
    args: Mapping[str, Any] = field(default_factory=dict)
    request: str = ""
    prompt: str = ""
    held_wording: bool = False

    def requirements(self) -> tuple[Requirement, ...]:
        """Return the form requirement (none for plain chat) and the fact requirement."""
        fact = Requirement("lab:fact", {"entity": self.entity, "attribute": self.attribute})
        if self.leaf is None:
            return (fact,)
        return (Requirement(LEAVES[self.leaf].requirement, self._kwargs()), fact)

    def _kwargs(self) -> dict[str, Any]:
        args = self.args
        kwargs: dict[str, dict[str, Any]] = {
            "exact_words": {"n": args.get("n")},
            "exact_sentences": {"n": args.get("n")},
            "bullets": {"num_bullets": args.get("n")},
            "keyword": {"keywords": [args.get("word")]},
            "forbidden": {"forbidden_words": [args.get("word")]},
            "end_phrase": {"end_phrase": args.get("phrase")},
            "start_word": {"word": args.get("word")},
            "repeat_prompt": {"prompt_to_repeat": self.request},
            "postscript": {"postscript_marker": "P.S."},
            "placeholder": {"num_placeholders": args.get("n")},
        }
        return kwargs.get(self.leaf or "", {})

    def answer(self, rng: random.Random, values: Values | None = None) -> str:
        """Return a response in the required form, stating `values` (default: the true facts)."""
        stated = FACTS[self.entity] if values is None else values
        return solve(self.leaf, self.entity, self.attribute, stated, self.args, self.request, rng)

    def ignoring_answer(self, rng: random.Random, values: Values | None = None) -> str:
        """Return a fluent, true answer of a writer who ignores the requirement (it may hold by chance)."""
        stated = FACTS[self.entity] if values is None else values
        if self.leaf == "forbidden":
            # The likeliest slip: the word that must not appear, said outright.
            return (
                f"{plain_answer(self.entity, self.attribute, stated)} {capitalise(str(self.args['word']))}."
            )
        return chat_answer(self.entity, self.attribute, stated, rng)


def leaf_args(leaf: str, entity: str, rng: random.Random, *, held_words: bool) -> dict[str, Any]:
    """Draw a leaf's arguments; `held_words` draws words that training rows never use."""
    words = HELD_OUT_WORDS if held_words else TRAINING_WORDS
    if leaf in ("keyword", "start_word"):
        return {"word": rng.choice(words)}
    if leaf == "forbidden":
        # Words an unmindful answer would probably use, so that not knowing the rule is visible.
        return {"word": rng.choice((*_FORBIDDEN_IN_CHAT, KIND_OF[entity]))}
    if leaf == "end_phrase":
        return {"phrase": " ".join(rng.sample(words, rng.randint(2, 3)))}
    if leaf in _RANGES:
        return {"n": rng.randint(*_RANGES[leaf])}
    return {}


def draw_task(
    leaf: str | None, rng: random.Random, *, split: Split = "train", held_wording: bool = False
) -> Task:
    """Draw a task.

    Args:
        leaf: Leaf name, or None for plain chat.
        rng: Source of every choice.
        split: Whose requests to use; other splits than `train` also use held-out argument words.
        held_wording: Word the requirement as only evaluation does.
    """
    attribute, template, entity = rng.choice(requests(split))
    return task_for(
        attribute, template, entity, leaf, rng, held_words=split != "train", held_wording=held_wording
    )


def task_for(
    attribute: str,
    template: int,
    entity: str,
    leaf: str | None,
    rng: random.Random,
    *,
    held_words: bool = False,
    held_wording: bool = False,
) -> Task:
    """Build the task of one request; the leaf's arguments and wording are drawn."""
    request = REQUESTS[attribute][template].format(e=entity)
    if leaf is None:
        return Task(attribute, entity, None, {}, request, request)
    args = leaf_args(leaf, entity, rng, held_words=held_words)
    wordings = LEAVES[leaf].held if held_wording else LEAVES[leaf].seen
    wording = rng.choice(wordings).format(**args, Word=capitalise(str(args.get("word", ""))))
    return Task(attribute, entity, leaf, args, request, f"{request} {wording}", held_wording)
