"""Score outputs against items: one verdict an output, the same in any order, run or process.

Source: strict and loose verdicts as in IFEval (arXiv:2311.07911); form and content are the same verdicts
restricted to requirements that judge form, and to those that judge content (`types.CONTENT_PREFIXES`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from autosft.errors import SuiteError, VerifierError
from autosft.evals.content_guard import content_flags
from autosft.evals.outputs import Output
from autosft.identity import canonical_json
from autosft.taxonomy.verifiers.verdict import (
    Predicate,
    executes,
    has_loose,
    loose_variants,
    passes_strictly,
    predicate,
)
from autosft.types import CONTENT_PREFIXES, EvalItem, Requirement

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ItemScore:
    """Verdicts on one output.

    Attributes:
        item: Item id.
        leaf: The item's leaf.
        strict: Every requirement holds strictly. This is the score.
        loose: Every requirement holds loosely.
        form: Every form requirement holds strictly (True where the item has none).
        content: Every content requirement holds strictly (True where the item has none).
        truncated: The output was cut at the token limit; it is judged as it stands and counted apart.
        empty: The output is blank; all verdicts are False.
        tokens: Generated tokens.
        sample: Number of the sample.
        strict_each: Strict verdicts by position of the requirement (ids may repeat in an item).
        loose_each: Loose verdicts by position.
        tags: The item's grouping labels.
        flags: Why the output looks like no answer (`content_guard`), whatever its verdicts.
    """

    item: str
    leaf: str
    strict: bool
    loose: bool
    form: bool
    content: bool
    truncated: bool
    empty: bool
    tokens: int
    sample: int
    strict_each: tuple[bool, ...]
    loose_each: tuple[bool, ...]
    tags: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()


def score_outputs(
    items: Sequence[EvalItem], outputs: Iterable[Output], *, workers: int | None = None
) -> list[ItemScore]:
    """Judge outputs.

    Args:
        items: The suite's items.
        outputs: One or more outputs for every item, in any order.
        workers: Where requirements run code, how many answers are judged side by side; one a core if None.

    Returns:
        Scores in the order of the items, then of the samples.

    Raises:
        SuiteError: An item has no output, an output belongs to no item, or an item's sample occurs twice.
        VerifierError: A requirement is unknown or its arguments do not fit; names the item.
    """
    by_item: dict[str, dict[int, Output]] = {item.id: {} for item in items}
    for output in outputs:
        if output.item not in by_item:
            raise SuiteError(f"an output belongs to no item: {output.item!r}", where="score")
        if output.sample in by_item[output.item]:
            raise SuiteError(f"sample {output.sample} occurs twice", where=f"item {output.item}")
        by_item[output.item][output.sample] = output
    missing = [key for key, found in by_item.items() if not found]
    if missing:
        raise SuiteError(
            f"{len(missing)} of {len(by_item)} items have no output", where=f"first {missing[0]}"
        )
    judges: dict[bytes, Predicate] = {}
    work = [(item, by_item[item.id][sample]) for item in items for sample in sorted(by_item[item.id])]
    if any(executes(r.id, r.kwargs) for item in items for r in item.requirements):
        # The work is done by confined processes; a thread waits for each.
        with ThreadPoolExecutor(max_workers=workers or os.cpu_count() or 1) as pool:
            return list(pool.map(lambda pair: _score(pair[0], pair[1], judges), work))
    return [_score(item, output, judges) for item, output in work]


def _score(item: EvalItem, output: Output, judges: dict[bytes, Predicate]) -> ItemScore:
    prompt = next((m.content for m in reversed(item.messages) if m.role == "user"), "")
    variants = tuple(dict.fromkeys(loose_variants(output.text)))
    strict, loose = [], []
    for requirement in item.requirements:
        passes = _judge(item, requirement, judges)
        strict.append(_decide(item, passes, prompt, variants[:1]))
        tried = variants[1:] if has_loose(requirement.id, requirement.kwargs) else ()
        loose.append(strict[-1] or _decide(item, passes, prompt, tried))
    filled = bool(output.text.strip())
    content = [r.id.startswith(CONTENT_PREFIXES) for r in item.requirements]
    return ItemScore(
        item=item.id,
        leaf=item.leaf,
        strict=filled and all(strict),
        loose=filled and all(loose),
        form=filled and all(ok for ok, is_content in zip(strict, content, strict=True) if not is_content),
        content=filled and all(ok for ok, is_content in zip(strict, content, strict=True) if is_content),
        truncated=output.truncated,
        empty=not filled,
        tokens=output.tokens,
        sample=output.sample,
        strict_each=tuple(strict),
        loose_each=tuple(loose),
        tags=item.tags,
        flags=content_flags(prompt, output.text, item.requirements),
    )


def _judge(item: EvalItem, requirement: Requirement, judges: dict[bytes, Predicate]) -> Predicate:
    key = canonical_json([requirement.id, dict(requirement.kwargs)])
    if key not in judges:
        judges[key] = _named(item, lambda: predicate(requirement.id, requirement.kwargs))
    return judges[key]


def _decide(item: EvalItem, passes: Predicate, prompt: str, texts: Sequence[str]) -> bool:
    return _named(item, lambda: any(passes_strictly(passes, prompt, text) for text in texts))


def _named(item: EvalItem, run: Callable[[], _T]) -> _T:
    try:
        return run()
    except VerifierError as error:
        where = f"item {item.id}" + (f": {error.where}" if error.where else "")
        raise VerifierError(error.what, where=where, hint=error.hint) from None


def summarise(scores: Sequence[ItemScore]) -> dict[str, Any]:
    """Return what a person wants at a glance: mean verdicts and counts.

    Returns:
        n, strict, loose, form, content (fractions of the outputs), truncated, empty, flagged, flagged_passes
        (counts; flagged by the content guard), tokens (sum), and requirement_strict, requirement_loose
        (fractions of all requirements, IFEval's instruction level).
    """
    n = len(scores)
    each = [
        (s, free) for score in scores for s, free in zip(score.strict_each, score.loose_each, strict=True)
    ]

    def mean(name: str) -> float:
        return sum(bool(getattr(score, name)) for score in scores) / n if n else 0.0

    return {
        "n": n,
        **{name: mean(name) for name in ("strict", "loose", "form", "content")},
        "truncated": sum(score.truncated for score in scores),
        "empty": sum(score.empty for score in scores),
        "flagged": sum(bool(score.flags) for score in scores),
        "flagged_passes": sum(bool(score.flags) and score.strict for score in scores),
        "tokens": sum(score.tokens for score in scores),
        "requirement_strict": sum(s for s, _ in each) / len(each) if each else 0.0,
        "requirement_loose": sum(free for _, free in each) / len(each) if each else 0.0,
    }
