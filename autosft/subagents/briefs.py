"""What each analyst reads, as parts of its question: measured tables, and bounded samples of text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from autosft.llm import Kind, Part, shown
from autosft.llm.text import as_json, table
from autosft.subagents.evidence import Evidence, Sources
from autosft.subagents.rows import check_rows, mean, spread
from autosft.subagents.tools import failing_cases, shown_row
from autosft.types import Row

SAMPLE_ROWS = 6
WEAK_LEAVES, CASES_PER_LEAF, NEAREST = 4, 2, 2
#: Rows that failing prompts are compared with; larger pools are sampled evenly.
COMPARED_ROWS = 5_000
CURVE_POINTS = 8
RAW_ROWS, RAW_ANSWERS, RAW_STEPS = 20, 30, 60


def brief(evidence: Evidence, sources: Sources) -> tuple[Part, ...]:
    """Return the parts of an analyst's question.

    Args:
        evidence: What its collector measured.
        sources: What it was measured on.
    """
    head = (
        f"Round {sources.round} is planned. Your proposals already run from its parent: {evidence.attempt}."
    )
    return (
        Part("instructions", head),
        *(Part(_KINDS.get(evidence.analyst, "evidence"), text) for text in _tables(evidence)),
        *_SAMPLES[evidence.analyst](sources),
    )


def _tables(evidence: Evidence) -> list[str]:
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for finding in evidence.findings:
        groups[finding.metric].append({finding.metric: finding.subject, **finding.values})
    return [f"Measured by {metric}:\n{table(rows[:80])}" for metric, rows in groups.items()]


def _data(sources: Sources) -> list[Part]:
    checked = check_rows(sources.pool, sources.ctx)
    failing = [r.index for r in checked if not r.passes]
    passing = [r.index for r in checked if r.passes]
    parts = []
    for title, indices in (("failing", failing), ("passing", passing)):
        rows = [shown_row(sources.pool.row(i)) for i in spread(indices, SAMPLE_ROWS)]
        parts.append(Part("evidence", f"Sample of {len(indices):,} {title} rows (data):\n{as_json(rows)}"))
    return parts


def _failures(sources: Sources) -> list[Part]:
    cases = []
    for leaf in _weak(sources)[:WEAK_LEAVES]:
        for case in failing_cases(sources, leaf)[:CASES_PER_LEAF]:
            cases.append({"leaf": leaf, **case, "nearest_rows": _nearest(sources, case["prompt"])})
    return [
        Part(
            "evaluation_output",
            f"Failing cases with the training rows nearest to them (data):\n{as_json(cases)}",
        )
    ]


def _nearest(sources: Sources, prompt: str) -> list[dict[str, Any]]:
    from rapidfuzz import fuzz, process

    chosen = spread(range(len(sources.pool)), COMPARED_ROWS)
    prompts = {i: sources.pool.row(i).prompt[:600] for i in chosen}
    found = process.extract(prompt, prompts, scorer=fuzz.token_set_ratio, limit=NEAREST)
    return [_taught(sources.pool.row(i), sources, likeness) for _, likeness, i in found]


def _taught(row: Row, sources: Sources, likeness: float) -> dict[str, Any]:
    broken = [name for name, passed in sources.ctx.passes(row).items() if not passed]
    return {
        "likeness": round(likeness),
        "prompt": shown(row.prompt, 200),
        "response": shown(row.response, 200),
        "breaks": broken[:4],
    }


def _dynamics(sources: Sources) -> list[Part]:
    best: dict[str, tuple[float, int]] = {}
    for past in sources.rounds:
        for leaf, score in past.leaf_scores.items():
            if leaf not in best or score > best[leaf][0]:
                best[leaf] = (score, past.round)
    forgotten = [
        {"leaf": leaf, "score": score, "best": best[leaf][0], "in_round": best[leaf][1]}
        for leaf, score in sources.leaf_scores.items()
        if leaf in best and best[leaf][0] > score + 1e-9
    ]
    cut: dict[str, list[bool]] = defaultdict(list)
    by_seed: dict[str, dict[str, Any]] = {leaf: {"leaf": leaf} for leaf in sources.leaf_scores}
    for seed, verdicts in sources.verdicts.items():
        scores: dict[str, list[bool]] = defaultdict(list)
        for verdict in verdicts:
            cut[verdict.leaf].append(verdict.truncated)
            scores[verdict.leaf].append(verdict.strict)
        for leaf, row in by_seed.items():
            row[f"seed_{seed}"] = mean(scores[leaf])
    for leaf, row in by_seed.items():
        row["cut_off_frac"] = mean(cut[leaf])
    return [
        Part(
            "training_output", f"Loss by source over the steps, mean of seeds:\n{table(loss_curve(sources))}"
        ),
        Part(
            "evaluation_output", f"Leaf scores by seed, and answers cut off:\n{table(list(by_seed.values()))}"
        ),
        Part("records", f"Leaves that scored higher in an earlier round:\n{table(forgotten)}"),
    ]


def loss_curve(sources: Sources, points: int = CURVE_POINTS) -> list[dict[str, Any]]:
    """Return loss by source at a few steps, mean over the seeds; a row a source, a column a step."""
    import pyarrow.parquet as pq

    curves: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for folder in sources.runs.values():
        found = pq.read_table(folder / "loss_curve.parquet", columns=["step", "source", "loss"])
        columns = (found.column(name).to_pylist() for name in ("step", "source", "loss"))
        for step, source, loss in zip(*columns, strict=True):
            if loss is not None:
                curves[source or "(all)"][step].append(loss)
    rows = []
    for source, curve in sorted(curves.items())[:20]:
        row: dict[str, Any] = {"source": source}
        steps = sorted(curve)
        for step in spread(steps, points):
            row[f"step_{step}"] = mean(curve[step])
        rows.append(row)
    return rows


def _history(sources: Sources) -> list[Part]:
    rows = []
    for past in sources.rounds:
        moved = sorted(past.actual.items(), key=lambda item: item[1])
        rows.append(
            {
                "round": past.round,
                "parent": past.parent,
                "by": " ".join(past.analysts),
                "kinds": " ".join(past.kinds),
                "score": past.score,
                "delta": past.delta,
                "predicted": _short(past.predicted),
                "fell_most": _short(dict(moved[:3])),
                "rose_most": _short(dict(moved[-3:])),
                "outcome": past.outcome,
            }
        )
    return [Part("records", f"Rounds so far:\n{table(rows[-40:])}")]


def _short(deltas: Mapping[str, float]) -> str:
    return " ".join(f"{leaf}{delta:+.2f}" for leaf, delta in list(deltas.items())[:6])


def _solo(sources: Sources) -> list[Part]:
    """Return raw output, unsummarised: what the agent of the variant `base` has to read for itself."""
    pool = [shown_row(sources.pool.row(i)) for i in spread(range(len(sources.pool)), RAW_ROWS)]
    answers = []
    for leaf in sources.leaf_scores:
        answers += [{"leaf": leaf, **case} for case in failing_cases(sources, leaf, only=False)[:2]]
    return [
        Part("records", f"Leaf scores of the parent: {as_json(sources.leaf_scores)}"),
        Part("evidence", f"Rows of the pool (data):\n{as_json(pool)}"),
        Part("evaluation_output", f"Answers of the model (data):\n{as_json(answers[:RAW_ANSWERS])}"),
        *_history(sources),
    ]


def _weak(sources: Sources) -> list[str]:
    return sorted(sources.leaf_scores, key=lambda leaf: (sources.leaf_scores[leaf], leaf))


_SAMPLES: Mapping[str, Callable[[Sources], list[Part]]] = {
    "data": _data,
    "failures": _failures,
    "dynamics": _dynamics,
    "history": _history,
    "solo": _solo,
}
_KINDS: Mapping[str, Kind] = {
    "failures": "evaluation_output",
    "dynamics": "training_output",
    "history": "records",
}
