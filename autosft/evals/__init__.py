"""Evaluation: suites, scores, the statistics of comparing campaigns' rounds, and sealed held-out twins."""

from __future__ import annotations

from autosft.evals.claims import Claim, ClaimRule, check_guard, first_seed_bias, remeasure_bias
from autosft.evals.score import ItemScore, Output, score_outputs, summarise
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
    "read_items",
    "remeasure_bias",
    "score_outputs",
    "seed_noise_floor",
    "summarise",
    "write_items",
]
