"""What must hold before training starts (I1, I2, I4, I5, I7); checked by the library, whoever calls it."""

from __future__ import annotations

from pathlib import Path

from autosft.actions import load_build, require_clean
from autosft.errors import BaseFingerprintError
from autosft.executor import base_fingerprint
from autosft.meta.campaign import Campaign


def check_submission(campaign: Campaign, number: int, recipe: str, build: str) -> None:
    """Check everything that must hold before training starts, then freeze the round's hypothesis.

    Raises:
        BaseFingerprintError: I1.
        BudgetError: I2.
        ContaminationError: I5.
        LineageError: I7.
        HypothesisError: I4.
        SpendCapError: I9.
    """
    c = campaign
    found = base_fingerprint(Path(c.facts.base))
    if found != c.facts.base_fingerprint:
        raise BaseFingerprintError(
            f"fingerprint {found}, the campaign's base has {c.facts.base_fingerprint}",
            where=f"round {number}, {c.facts.base}",
            hint="the base changed on disk; restore it",
        )
    built = load_build(c.store.load("build", build))
    c.guard.check(built)
    require_clean(built, c.facts.benchmarks)
    c.hypotheses.submit(number, recipe)
