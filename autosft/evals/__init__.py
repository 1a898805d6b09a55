"""Evaluation: suites, scores, the statistics of comparing campaigns' rounds, and sealed held-out twins."""

from __future__ import annotations

from autosft.evals.claims import Claim, ClaimRule, check_guard, first_seed_bias, remeasure_bias
from autosft.evals.holdout import Seal, open_sealed, read_seal, record_scored, seal
from autosft.evals.outputs import Output, read_outputs, write_outputs
from autosft.evals.score import ItemScore, score_outputs, summarise
from autosft.evals.stats import (
    Comparison,
    Estimate,
    SeedNoise,
    compare,
    compare_leaves,
    estimate,
    estimate_leaves,
    holm,
    minimum_detectable_effect,
    seed_noise_floor,
)
from autosft.evals.suites import SUITES, Suite, load_suite, read_items, write_items
from autosft.evals.table import METRICS, ScoreTable, campaign_score

__all__ = [
    "METRICS",
    "SUITES",
    "Claim",
    "ClaimRule",
    "Comparison",
    "Estimate",
    "ItemScore",
    "Output",
    "ScoreTable",
    "Seal",
    "SeedNoise",
    "Suite",
    "campaign_score",
    "check_guard",
    "compare",
    "compare_leaves",
    "estimate",
    "estimate_leaves",
    "first_seed_bias",
    "holm",
    "load_suite",
    "minimum_detectable_effect",
    "open_sealed",
    "read_items",
    "read_outputs",
    "read_seal",
    "record_scored",
    "remeasure_bias",
    "score_outputs",
    "seal",
    "seed_noise_floor",
    "summarise",
    "write_items",
    "write_outputs",
]
