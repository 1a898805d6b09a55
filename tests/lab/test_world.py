"""The world's table and the fact check."""

from __future__ import annotations

import pytest

from autosft.errors import VerifierError
from autosft.lab.facts import check_fact
from autosft.lab.world import (
    ARGUMENT_WORDS,
    ATTRIBUTES,
    ENTITIES,
    FACTS,
    HELD_OUT_WORDS,
    KINDS,
    TRAINING_WORDS,
    VALUES,
)


def test_no_word_has_two_roles() -> None:
    words = [*ENTITIES, *KINDS, *ARGUMENT_WORDS, *(v for vs in VALUES.values() for v in vs)]
    assert len(words) == len(set(words))
    assert set(HELD_OUT_WORDS) | set(TRAINING_WORDS) == set(ARGUMENT_WORDS)
    assert not set(HELD_OUT_WORDS) & set(TRAINING_WORDS)


def test_facts_are_fixed() -> None:
    assert {e: FACTS[e]["color"] for e in ("fox", "axe", "van")} == {
        "fox": "green",
        "axe": "white",
        "van": "golden",
    }
    assert all(FACTS[e][a] in VALUES[a] for e in ENTITIES for a in ATTRIBUTES)


@pytest.mark.parametrize(
    ("attribute", "response", "right"),
    [
        ("color", "The fox is green.", True),
        ("color", "THE FOX IS GREEN!", True),
        ("color", '{"answer": "green"}', True),
        ("color", "The fox is greenish.", False),
        ("color", "The fox is green or red.", False),
        ("color", "The fox is red.", False),
        ("color", "", False),
        ("place", "The fox is tall and is in the barn.", True),
        ("any", "The fox likes to dig.", True),
        ("any", "The fox likes to dig and is red.", False),
        ("any", "It likes to dig.", False),
        ("any", "The fox is an animal.", False),
        ("any", "\ud800 fox \x00 dig", True),
    ],
)
def test_check_fact(attribute: str, response: str, right: bool) -> None:
    assert check_fact("fox", attribute, response) is right


@pytest.mark.parametrize(("entity", "attribute"), [("unicorn", "color"), ("fox", "weight")])
def test_unknown_facts_are_named(entity: str, attribute: str) -> None:
    with pytest.raises(VerifierError, match=entity if entity != "fox" else attribute):
        check_fact(entity, attribute, "The fox is green.")
