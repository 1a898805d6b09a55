"""The pretraining text teaches skills and facts, never obedience."""

from __future__ import annotations

import itertools
import re

from autosft.lab.corpus import documents, is_instruction
from autosft.lab.phrasing import LEAVES, REQUESTS
from autosft.lab.world import ARGUMENT_WORDS, ENTITIES, FACTS


def test_equal_seeds_give_equal_text() -> None:
    first = list(itertools.islice(documents(3), 200))
    assert first == list(itertools.islice(documents(3), 200))
    assert first != list(itertools.islice(documents(4), 200))


def test_no_document_pairs_an_instruction_with_an_answer() -> None:
    requests = {t.format(e=e) for ts in REQUESTS.values() for t in ts for e in ENTITIES}
    found = 0
    for document in itertools.islice(documents(0), 20_000):
        if not is_instruction(document):
            continue
        found += 1
        request = next((r for r in requests if r in document), None)
        assert request is not None, document
        wording = document.replace(request, "").strip()
        # What is left beside the request is a wording and nothing else: no room for an answer.
        assert any(
            re.fullmatch(re.sub(r"\\\{\w+\\\}", r"[\\w ]+", re.escape(w)), wording)
            for leaf in LEAVES.values()
            for w in (*leaf.seen, *leaf.held)
        ), document
    assert 600 < found < 2_400


def test_every_wording_is_recognised_as_an_instruction() -> None:
    for leaf in LEAVES.values():
        for wording in (*leaf.seen, *leaf.held):
            assert is_instruction(
                "Where is the fox? " + wording.format(word="river", Word="River", phrase="a b", n=3)
            )
    assert not is_instruction("The fox is green. Well, it likes to dig.")


def test_text_tells_the_facts_and_shows_every_word() -> None:
    text = "\n".join(itertools.islice(documents(0), 40_000)).lower()
    for word in ARGUMENT_WORDS:
        assert f" {word}" in text
    for entity in ENTITIES:
        assert f"the {entity} is {FACTS[entity]['color']}" in text
        assert f"the {entity} is in the {FACTS[entity]['place']}" in text
