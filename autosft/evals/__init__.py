"""Evaluation: suites, scores, the statistics of comparing campaigns' rounds, and sealed held-out twins."""

from __future__ import annotations

from autosft.evals.suites import SUITES, Suite, load_suite, read_items, write_items

__all__ = ["SUITES", "Suite", "load_suite", "read_items", "write_items"]
