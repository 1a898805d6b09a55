"""Row-level measurements that several analysts start from: what passes, what an action would mend."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from autosft.actions import ActionContext, apply_recipe
from autosft.errors import AutosftError
from autosft.pool import Pool
from autosft.types import CONTENT_PREFIXES, ActionCall, Recipe

# Rows an action is tried on to estimate what share of failing rows it would mend.
TRIAL_ROWS = 40
PLAIN = "(no leaf)"


@dataclass(frozen=True, slots=True)
class Checked:
    """A row's verdicts: does the form hold, does the content, can either be decided at all."""

    index: int
    leaf: str
    source: str
    form: bool
    content: bool
    decided: bool

    @property
    def passes(self) -> bool:
        """True where every requirement holds (also where there is none)."""
        return self.form and self.content


def check_rows(pool: Pool, ctx: ActionContext) -> list[Checked]:
    """Return every row's verdicts, in pool order."""
    checked = []
    for index, row in enumerate(pool.rows()):
        verdicts = ctx.passes(row)
        content = all(ok for name, ok in verdicts.items() if name.startswith(CONTENT_PREFIXES))
        form = all(ok for name, ok in verdicts.items() if not name.startswith(CONTENT_PREFIXES))
        checked.append(Checked(index, row.leaf or PLAIN, row.source, form, content, bool(verdicts)))
    return checked


def mended_frac(pool: Pool, indices: Sequence[int], call: ActionCall, ctx: ActionContext) -> float:
    """Apply an action to a sample of failing rows; return the share that passes afterwards, in [0, 1].

    An action that cannot be applied to them mends none: that is the finding.
    """
    sample = spread(indices, TRIAL_ROWS)
    if not sample:
        return 0.0
    part = pool.take(sample)
    try:
        after, _ = apply_recipe(Recipe(part.fingerprint, (call,), 1), part, ctx)
    except AutosftError:
        return 0.0
    return sum(all(ctx.passes(row).values()) for row in after.rows()) / len(sample)


def spread(values: Sequence[int], n: int) -> list[int]:
    """Return at most n values, evenly spaced over the sequence."""
    if len(values) <= n:
        return list(values)
    return [values[int(i * len(values) / n)] for i in range(n)]


def mean(values: Iterable[float]) -> float:
    """Return the arithmetic mean; 0 of nothing."""
    known = list(values)
    return sum(known) / len(known) if known else 0.0
