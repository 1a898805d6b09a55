"""Views as the commands receive them, with text that tries to steer a terminal."""

from __future__ import annotations

from typing import Any

HOSTILE = "leaf\x1b[31mred\x1b]0;title\x07 \u202egnp\x9b5m [bold]b[/bold] :smile:\nnext\r\ud800"

ROUNDS: list[dict[str, Any]] = [
    {
        "round": number,
        "score": 0.3951 + 0.05 * number,
        "ci_low": 0.37,
        "ci_high": 0.42,
        "n_seeds": 3,
        "verdict": "not distinguishable (minimum detectable effect .031)" if number else "the untouched pool",
        "incumbent": number == 1,
        "claimed_best": number == 0,
        "families": {"prune": 2, "order": 1} if number else {},
        "train_tokens": 123_456,
        "optimizer_steps": 241,
        "base_fingerprint": "a" * 24,
        "hypothesis_id": f"h{number}",
        "build_fingerprint": "b" * 24,
        "checkpoint": "/runs/lab/artifacts/checkpoint/c",
    }
    for number in range(3)
]
LEAVES: list[dict[str, Any]] = [
    {
        "leaf": name,
        "path": f"format/{name}",
        "score": score,
        "ci_low": 0.1,
        "ci_high": 0.3,
        "n": 180,
        "delta_best": -0.04,
        "supply_rows": 12,
        "supply_tokens": 3456,
        "targeted_rounds": [1, 2],
    }
    for name, score in (("no_comma", 0.2), (HOSTILE, float("nan")))
]
ACTIONS: list[dict[str, Any]] = [
    {
        "round": 1,
        "family": "mix",
        "kind": "resupervise/program",
        "rows_added": 0,
        "rows_removed": 0,
        "rows_changed": 0,
        "rows_reweighted": 1200,
        "rows_moved": 0,
        "tokens_delta": -12_345,
        "set_new_best": True,
    }
]
STATUS: dict[str, Any] = {
    "campaign": "lab",
    "state": "running",
    "stop_reason": None,
    "suites": ["lab"],
    "note": HOSTILE,
    "incumbent_score": 0.512345,
    "budget_tokens": 120_000,
    "elapsed_s": 200.4,
}
