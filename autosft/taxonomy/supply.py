"""Which rows exercise which leaf, and how much of a leaf a pool supplies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self, TypeVar

from autosft.errors import TaxonomyError, VerifierError
from autosft.taxonomy.tree import Taxonomy
from autosft.taxonomy.verifiers import verify
from autosft.types import CONTENT_PREFIXES, Row

MIN_PASSING_ROWS = 20


class Rows(Protocol):
    """What is needed of a pool (`autosft.pool.Pool` fits; the layers keep the two packages apart)."""

    def rows(self) -> tuple[Row, ...]:
        """Return the rows in the pool's order."""
        ...


class RelabelledRows(Rows, Protocol):
    """Rows of which some can be exchanged for others."""

    def replace(self, indices: Sequence[int], rows: Sequence[Row]) -> Self:
        """Return the pool with the rows at `indices` replaced."""
        ...


Labelled = TypeVar("Labelled", bound=RelabelledRows)


@dataclass(frozen=True, slots=True)
class Supply:
    """What a pool holds for one leaf.

    Attributes:
        leaf: Leaf name.
        rows: Rows with a requirement of the leaf.
        tokens: Their tokens; 0 where no counts were given.
        passing_rows: Rows whose response meets all of the row's requirements.
        form_passing_rows: Rows whose response meets its form requirements, whatever its content.
        short: True where `passing_rows` is below the wanted minimum: the pool cannot teach the leaf yet.
    """

    leaf: str
    rows: int
    tokens: int
    passing_rows: int
    form_passing_rows: int
    short: bool

    @property
    def passing_frac(self) -> float:
        """Share of the rows that meet all their requirements (0 where there are none)."""
        return self.passing_rows / self.rows if self.rows else 0.0


def leaves_of_rows(pool: Rows, taxonomy: Taxonomy) -> list[str | None]:
    """Return each row's leaf, in row order: by its requirements, else its own label if the tree has it."""
    return [
        taxonomy.leaf_of(row.requirements) or (row.leaf if row.leaf in taxonomy else None)
        for row in pool.rows()
    ]


def assign(pool: Labelled, taxonomy: Taxonomy) -> Labelled:
    """Return the pool with every row's `leaf` set as `leaves_of_rows` finds it; nothing else changes."""
    rows, leaves = pool.rows(), leaves_of_rows(pool, taxonomy)
    changed = [index for index, row in enumerate(rows) if row.leaf != leaves[index]]
    if not changed:
        return pool
    return pool.replace(changed, [replace(rows[index], leaf=leaves[index]) for index in changed])


def supply(
    pool: Rows,
    taxonomy: Taxonomy,
    n_tokens: Sequence[int] | None = None,
    *,
    passes: Callable[[Row], Mapping[str, bool]] | None = None,
    min_passing_rows: int = MIN_PASSING_ROWS,
) -> dict[str, Supply]:
    """Count a pool's supply of every leaf. A row with requirements of several leaves counts for each.

    Args:
        pool: The pool.
        taxonomy: The tree.
        n_tokens: Tokens of each row, in row order.
        passes: Verdicts of a row by requirement id, where a caller has them already; computed where absent.
        min_passing_rows: Below this many passing rows a leaf is `short`.

    Returns:
        Leaf name -> supply, in the tree's order, leaves without rows included.

    Raises:
        TaxonomyError: `n_tokens` has another length than the pool.
        VerifierError: A row's requirement is unknown or its arguments do not fit; names the row.
    """
    rows = pool.rows()
    if n_tokens is not None and len(n_tokens) != len(rows):
        raise TaxonomyError(f"{len(n_tokens)} token counts for {len(rows)} rows", where="supply")
    totals = {name: [0, 0, 0, 0] for name in taxonomy.names}
    for index, row in enumerate(rows):
        leaves = taxonomy.leaves_of(row.requirements)
        if not leaves:
            continue
        verdicts = passes(row) if passes is not None else row_verdicts(row)
        form = all(ok for key, ok in verdicts.items() if not key.startswith(CONTENT_PREFIXES))
        for name in leaves:
            total = totals[name]
            total[0] += 1
            total[1] += int(n_tokens[index]) if n_tokens is not None else 0
            total[2] += all(verdicts.values())
            total[3] += form
    return {
        name: Supply(name, rows, tokens, passing, form, short=passing < min_passing_rows)
        for name, (rows, tokens, passing, form) in totals.items()
    }


def row_verdicts(row: Row) -> dict[str, bool]:
    """Return a row's strict verdicts by requirement id; an id that occurs twice passes if both do.

    Raises:
        VerifierError: A requirement is unknown or its arguments do not fit; names the row.
    """
    verdicts: dict[str, bool] = {}
    for requirement in row.requirements:
        try:
            passed = verify(requirement, row.prompt, row.response)
        except VerifierError as error:
            raise VerifierError(
                error.what, where=f"row {row.id}: {error.where}".rstrip(": "), hint=error.hint
            ) from None
        verdicts[requirement.id] = verdicts.get(requirement.id, True) and passed
    return verdicts
