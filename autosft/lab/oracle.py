"""Mend a lab pool by its manifest, one action family at a time: how much there is to gain, and where.

The examiner's tool: it reads the manifest, which no agent may. Each mend is what an action of its family
could have done with perfect knowledge of the defects; nothing here writes from evaluation material.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from autosft.errors import ActionError
from autosft.lab.defects import SCARCE_WEIGHT
from autosft.lab.phrasing import LEAVES
from autosft.lab.pool import Manifest
from autosft.lab.program import LabProgram
from autosft.pool import Pool, content_id, with_response
from autosft.types import FAMILIES, Family, Row

PRUNED = frozenset({"violating", "off_topic", "truncated", "duplicate", "leak"})
CHAT_WEIGHT = 0.35
"""What plain chat is worth beside tasks: it teaches to answer and to stop, which takes few rows."""


def mend(pool: Pool, manifest: Manifest, families: Iterable[Family] = FAMILIES) -> Pool:
    """Return the pool with the defects of the given families mended.

    Args:
        pool: The pool `make_pool` returned together with the manifest, unchanged.
        manifest: Its manifest.
        families: Which defects to mend; the result does not depend on their order.

    Raises:
        ActionError: A family is unknown, or the manifest is not this pool's.
    """
    wanted = set(families)
    unknown = wanted - set(FAMILIES)
    if unknown:
        raise ActionError(f"no action family {sorted(unknown)[0]!r}", hint=f"use {', '.join(FAMILIES)}")
    strangers = manifest.defects.keys() - set(pool.ids)
    if strangers:
        raise ActionError("the manifest is not this pool's", where=f"row {sorted(strangers)[0]}")
    # Dropping and editing look rows up by their ids in the original pool, so they come first.
    if "prune" in wanted:
        pool = pool.keep([not PRUNED & set(manifest.defects.get(row_id, ())) for row_id in pool.ids])
    if wanted & {"repair", "resupervise"}:
        pool = _edited(pool, manifest, repair="repair" in wanted, resupervise="resupervise" in wanted)
    if "synthesize" in wanted:
        pool = _synthesized(pool, manifest)
    if "mix" in wanted:
        pool = pool.with_weights(_weights(pool, manifest))
    if "order" in wanted:
        pool = pool.take(np.random.default_rng([17, manifest.seed]).permutation(len(pool)))
    return pool


def _edited(pool: Pool, manifest: Manifest, *, repair: bool, resupervise: bool) -> Pool:
    """Bring corrupted rows into form, and wrong facts right."""
    program, changed = LabProgram(), {}
    for index, row in enumerate(pool.rows()):
        edited = manifest.formed.get(row.id, row) if repair else row
        if resupervise and "wrong_fact" in manifest.defects.get(row.id, ()):
            right = program.correct(edited)
            edited = edited if right is None else _answering(edited, right)
        if edited is not row:
            changed[index] = edited
    return pool.replace(list(changed), list(changed.values()))


def _answering(row: Row, response: str) -> Row:
    messages = with_response(row.messages, response)
    return replace(row, id=content_id(messages), messages=messages)


def _synthesized(pool: Pool, manifest: Manifest) -> Pool:
    """Add an ordinary leaf's supply of rows for each absent leaf, spread over the file."""
    supply = max(1, round(sum(leaf is not None for leaf in pool.leaves) / len(LEAVES)))
    program = LabProgram()
    rows = [row for leaf in manifest.plan.absent for row in program.write(leaf, supply, manifest.seed)]
    rng = np.random.default_rng([18, manifest.seed])
    places = np.concatenate([np.linspace(0.0, 1.0, len(pool)), rng.random(len(rows))])
    return pool.append(rows).take(np.argsort(places, kind="stable"))


def _weights(pool: Pool, manifest: Manifest) -> NDArray[np.float64]:
    """Raise scarce leaves to an ordinary leaf's share and lower plain chat."""
    factors = dict.fromkeys(manifest.plan.scarce, 1.0 / SCARCE_WEIGHT)
    chosen = [CHAT_WEIGHT if leaf is None else factors.get(leaf, 1.0) for leaf in pool.leaves]
    weights: NDArray[np.float64] = pool.weights * np.array(chosen)
    return weights
