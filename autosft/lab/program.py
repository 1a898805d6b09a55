"""A program that knows the lab's facts: it corrects what rows state and writes rows for a leaf."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from functools import cached_property

from autosft.errors import ActionParamsError
from autosft.identity import fingerprint
from autosft.lab.answers import with_article
from autosft.lab.facts import check_fact
from autosft.lab.phrasing import LEAVES, REQUESTS
from autosft.lab.tasks import draw_task
from autosft.lab.world import ATTRIBUTES, ENTITIES, FACTS, KIND_OF, KINDS, VALUES
from autosft.pool import new_row
from autosft.taxonomy import verify
from autosft.types import Row

SOURCE = "lab_program"
MADE_BY = "synthesize/template"
_SCHEME = 1  # raise it when equal calls would give other rows
# After so many draws in a row that gave nothing new a leaf counts as exhausted.
_MISSES = 40


class LabProgram:
    """The lab's `Program`: right answers and template rows, by rule, from training material only."""

    name = "lab"

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of everything its output depends on."""
        facts = {entity: dict(values) for entity, values in FACTS.items()}
        wordings = {leaf.name: list(leaf.seen) for leaf in LEAVES.values()}
        return fingerprint(
            ["lab program", _SCHEME, facts, wordings, {a: list(t) for a, t in REQUESTS.items()}]
        )

    def correct(self, row: Row) -> str | None:
        """Return the row's response with wrong facts made right, its form kept.

        False values of the asked entity become true ones, in the letter case they stand in; the name and kind
        of another entity become the asked one's.

        Args:
            row: Any row; without a `lab:fact` requirement there is nothing to check.

        Returns:
            The corrected response, or None where nothing is wrong or the program cannot make it right.
        """
        fact = next((r for r in row.requirements if r.id == "lab:fact"), None)
        if fact is None:
            return None
        entity, attribute = str(fact.kwargs.get("entity")), str(fact.kwargs.get("attribute"))
        if entity not in FACTS or verify(fact, row.prompt, row.response):
            return None
        head = _repeated_request(row)
        corrected = head + _restate(row.response[len(head) :], entity)
        if corrected == row.response or not check_fact(entity, attribute, corrected):
            return None
        return corrected

    def write(self, leaf: str, n: int, seed: int) -> list[Row]:
        """Write new rows for a leaf: training requests, training wordings, training words, true facts.

        Args:
            leaf: Leaf name.
            n: How many rows; fewer come back where the leaf has not that many distinct ones.
            seed: Draws the rows.

        Returns:
            Rows with distinct messages, each passing all of its requirements; their verdicts are filled in.

        Raises:
            ActionParamsError: The lab has no such leaf, or `n` is negative.
        """
        if leaf not in LEAVES:
            raise ActionParamsError(
                f"the lab program cannot write rows for leaf {leaf!r}", hint=f"it knows {', '.join(LEAVES)}"
            )
        if n < 0:
            raise ActionParamsError(f"cannot write {n} rows", where=f"leaf {leaf}")
        rng = random.Random(f"lab-program-{leaf}-{seed}")
        rows: dict[str, Row] = {}
        misses = 0
        while len(rows) < n and misses < _MISSES:
            task = draw_task(leaf, rng)
            response, requirements = task.answer(rng), task.requirements()
            verdicts = {r.id: verify(r, task.prompt, response) for r in requirements}
            turns = [("user", task.prompt), ("assistant", response)]
            row = new_row(
                SOURCE, turns, requirements=requirements, leaf=leaf, made_by=MADE_BY, verdicts=verdicts
            )
            if all(verdicts.values()) and row.id not in rows:
                rows[row.id], misses = row, 0
            else:
                misses += 1
        return list(rows.values())


def _repeated_request(row: Row) -> str:
    """Return the part of the response that repeats the request, '' if none: it must stay as it is."""
    for requirement in row.requirements:
        repeated = requirement.kwargs.get("prompt_to_repeat")
        if isinstance(repeated, str) and row.response.lower().startswith(repeated.lower()):
            return row.response[: len(repeated)]
    return ""


def _restate(text: str, entity: str) -> str:
    """Replace every value, name and kind that is not the entity's own, articles included."""
    own, kind = FACTS[entity], KIND_OF[entity]
    for attribute in ATTRIBUTES:
        text = _replace_words(text, (v for v in VALUES[attribute] if v != own[attribute]), own[attribute])
    text = _replace_words(text, (e for e in ENTITIES if e != entity), entity)
    wrong_kinds = [k for k in KINDS if k != kind]
    text = _replace_words(text, (with_article(k) for k in wrong_kinds), with_article(kind))
    return _replace_words(text, wrong_kinds, kind)


def _replace_words(text: str, words: Iterable[str], by: str) -> str:
    pattern = r"\b(" + "|".join(re.escape(word) for word in words) + r")\b"
    return re.sub(pattern, lambda match: _in_case_of(match.group(), by), text, flags=re.IGNORECASE)


def _in_case_of(model: str, word: str) -> str:
    if len(model) > 1 and model.isupper():
        return word.upper()
    return word[:1].upper() + word[1:] if model[:1].isupper() else word
