"""The repaired set: the same answers judged by checks without the official ones' known faults.

Official semantics are the score everywhere; this is reported under its own name beside it. A verifier in
`taxonomy/verifiers/repaired` says which official id it stands in for. IFEval prompts whose text and arguments
disagree are judged by their text, and the one whose text contradicts itself is left out.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace

from autosft.evals.outputs import Output
from autosft.evals.score import ItemScore, score_outputs
from autosft.taxonomy.verifiers import VERIFIERS
from autosft.types import EvalItem, Requirement

#: (suite, item, place of the requirement) -> what the prompt's text asks for.
BY_TEXT: Mapping[tuple[str, str, int], Requirement] = {
    ("ifeval", "337", 0): Requirement(
        "length_constraints:number_words", {"relation": "at least", "num_words": 400}
    ),
    ("ifeval", "30", 0): Requirement("change_case:english_lowercase", {}),
}
#: Items that ask for two things at once that exclude each other.
UNDECIDABLE = frozenset({("ifeval", "2078")})


@functools.cache
def repairs() -> dict[str, str]:
    """Return official requirement id -> id of the repaired verifier."""
    return {
        verifier.repairs: key
        for key, verifier in VERIFIERS.items()
        if key.startswith("repaired:") and verifier.repairs
    }


def repaired_items(items: Sequence[EvalItem]) -> tuple[EvalItem, ...]:
    """Return the items as the repaired set judges them, in order, undecidable ones left out."""
    found = []
    for item in items:
        if (item.suite, item.id) in UNDECIDABLE:
            continue
        asked = [BY_TEXT.get((item.suite, item.id, n), r) for n, r in enumerate(item.requirements)]
        mended = tuple(Requirement(repairs().get(r.id, r.id), r.kwargs) for r in asked)
        found.append(item if mended == item.requirements else replace(item, requirements=mended))
    return tuple(found)


def repaired_scores(
    items: Sequence[EvalItem], outputs: Sequence[Output], official: Sequence[ItemScore]
) -> list[ItemScore] | None:
    """Judge outputs by the repaired set; None where it differs from the official one in no item.

    Args:
        items: The suite's items.
        outputs: All their outputs.
        official: What `score_outputs` said of them; taken over where an item's checks are the same.

    Raises:
        VerifierError: As `score_outputs`.
    """
    mended = repaired_items(items)
    if mended == tuple(items):
        return None
    before = {item.id: item for item in items}
    changed = [item for item in mended if item != before[item.id]]
    wanted = {item.id for item in changed}
    anew: dict[tuple[str, int], ItemScore] = {}
    if changed:
        scored = score_outputs(changed, [output for output in outputs if output.item in wanted])
        anew = {(score.item, score.sample): score for score in scored}
    kept = {item.id for item in mended}
    return [anew.get((s.item, s.sample), s) for s in official if s.item in kept]
