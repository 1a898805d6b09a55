"""What a suite reports of one checkpoint: official aggregates with intervals, and what is counted apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from autosft.errors import SuiteError
from autosft.evals.sampling import SampleMean, sample_mean, variance_parts
from autosft.evals.score import ItemScore

#: Suites whose instructions count one by one too, and suites whose first requirement is a result of its own.
INSTRUCTION_SUITES = ("ifeval", "ifbench")
STAGED_SUITES = {"mbpp_plus": ("base", "plus")}


def aggregate(suite: str, scores: Sequence[ItemScore], *, by_kind: bool = False) -> dict[str, Any]:
    """Return a suite's aggregates as JSON data.

    Args:
        suite: Suite name; decides which aggregates are official.
        scores: All scores of one checkpoint, equally many samples an item.
        by_kind: Report form and content apart; of use where items have requirements of both kinds.

    Returns:
        metrics: name -> mean, ci_low, ci_high, se, sampling_se, n_items, n_samples. The first is the score.
        leaves: leaf -> the same for the score. variance: sampling and item part of the score's verdicts.
        counts: answers, truncated, empty, flagged (content guard) and flagged_passes, their share of passes.

    Raises:
        SuiteError: Items have different numbers of samples.
    """
    rows = by_item(scores)
    metrics = {name: sample_mean(*values) for name, values in _metrics(suite, rows, by_kind).items()}
    parts = variance_parts([[[float(s.strict) for s in samples] for samples in rows.values()]])
    leaves: dict[str, list[list[float]]] = {}
    for samples in rows.values():
        leaves.setdefault(samples[0].leaf, []).append([float(s.strict) for s in samples])
    passes = [s for s in scores if s.strict]
    flagged = [s for s in scores if s.flags]
    return {
        "metrics": {name: as_json(value) for name, value in metrics.items()},
        "leaves": {leaf: as_json(sample_mean(values)) for leaf, values in leaves.items()},
        "variance": {"sampling": _finite(parts.sampling), "item": _finite(parts.item)},
        "counts": {
            "answers": len(scores),
            "truncated": sum(s.truncated for s in scores),
            "empty": sum(s.empty for s in scores),
            "flagged": len(flagged),
            "flagged_passes": sum(s.strict for s in flagged),
            "passes": len(passes),
            **{flag: sum(flag in s.flags for s in scores) for flag in ("echo", "repetition")},
        },
    }


def by_item(scores: Sequence[ItemScore]) -> dict[str, list[ItemScore]]:
    """Return each item's scores in order of the samples.

    Raises:
        SuiteError: There is no score, or items have different numbers of samples.
    """
    rows: dict[str, list[ItemScore]] = {}
    for score in scores:
        rows.setdefault(score.item, []).append(score)
    counts = {len(samples) for samples in rows.values()}
    if len(counts) != 1:
        raise SuiteError(f"items have different numbers of samples: {sorted(counts)}", where="aggregates")
    return {item: sorted(samples, key=lambda s: s.sample) for item, samples in rows.items()}


def _metrics(
    suite: str, rows: Mapping[str, list[ItemScore]], by_kind: bool
) -> dict[str, tuple[list[list[float]], list[float] | None]]:
    def verdicts(judge: Callable[[ItemScore], float]) -> list[list[float]]:
        return [[float(judge(s)) for s in samples] for samples in rows.values()]

    strict = verdicts(lambda s: s.strict)
    if suite in INSTRUCTION_SUITES:
        sizes = [float(len(samples[0].strict_each)) for samples in rows.values()]
        return {
            "prompt_strict": (strict, None),
            "prompt_loose": (verdicts(lambda s: s.loose), None),
            "instruction_strict": (verdicts(lambda s: sum(s.strict_each) / len(s.strict_each)), sizes),
            "instruction_loose": (verdicts(lambda s: sum(s.loose_each) / len(s.loose_each)), sizes),
        }
    if suite in STAGED_SUITES:
        first, both = STAGED_SUITES[suite]
        return {both: (strict, None), first: (verdicts(lambda s: s.strict_each[0]), None)}
    metrics: dict[str, tuple[list[list[float]], list[float] | None]] = {"strict": (strict, None)}
    for name in ("loose", "form", "content") if by_kind else ("loose",):
        values = verdicts(lambda s, name=name: getattr(s, name))  # type: ignore[misc]
        if values != strict:
            metrics[name] = (values, None)
    return metrics


def as_json(value: SampleMean) -> dict[str, Any]:
    """Return a mean as JSON data, rounded to six places; nan as None."""
    return {
        "mean": round(value.mean, 6),
        "ci_low": round(value.ci_low, 6),
        "ci_high": round(value.ci_high, 6),
        "se": _finite(value.se),
        "sampling_se": _finite(value.sampling_se),
        "n_items": value.n_items,
        "n_samples": value.n_samples,
    }


def _finite(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 6)
