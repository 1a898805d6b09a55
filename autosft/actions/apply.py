"""Applying a recipe's actions to a pool, with a diff each and complete lineage (I7)."""

from __future__ import annotations

from autosft.actions.catalogue import load
from autosft.actions.context import ActionContext
from autosft.actions.diff import diff_pools
from autosft.errors import ActionError, AutosftError, LineageError
from autosft.pool import Pool
from autosft.types import ActionDiff, Recipe


def apply_recipe(recipe: Recipe, pool: Pool, ctx: ActionContext) -> tuple[Pool, list[ActionDiff]]:
    """Apply a recipe's actions in order.

    Args:
        recipe: Its `pool` must be the pool's fingerprint.
        pool: Left unchanged.
        ctx: Its seed is replaced by the recipe's.

    Returns:
        The final pool, and one diff an action.

    Raises:
        ActionError: The recipe is for another pool; or a kind, parameters, or an action's own refusal.
        LineageError: An action made rows without parent or verdicts.
    """
    if recipe.pool != pool.fingerprint:
        raise ActionError(
            f"the recipe is for pool {recipe.pool}, this is {pool.fingerprint}",
            hint="give the pool it was made for",
        )
    diffs = []
    for number, call in enumerate(recipe.actions, start=1):
        action = load(call.kind)
        params = action.read_params(call.params)
        scope = ctx.scoped(recipe.seed)
        try:
            after = action.run(pool, params, scope)
        except AutosftError as error:
            error.where = f"action {number} {call.kind}" + (f", {error.where}" if error.where else "")
            raise type(error)(error.what, where=error.where, hint=error.hint) from None
        check_lineage(after)
        diffs.append(diff_pools(pool, after, call.kind, scope))
        pool = after
    return pool, diffs


def check_lineage(pool: Pool) -> None:
    """Check that made rows name maker, parent (unless `new`) and the verdicts that admitted them (I7).

    Raises:
        LineageError: One does not; names the row.
    """
    table = pool.table
    made = [table.column(name).to_pylist() for name in ("id", "parent", "made_by", "method", "verdicts")]
    for row_id, parent, made_by, method, verdicts in zip(*made, strict=True):
        if not (parent or made_by or method):
            continue
        lacking = [
            *([] if made_by else ["made_by"]),
            *([] if method in ("edit", "replace", "new") else ["method"]),
            *([] if parent or method == "new" else ["parent"]),
            *([] if verdicts != "{}" else ["verdicts"]),
        ]
        if lacking:
            raise LineageError(
                f"a made row lacks {', '.join(lacking)}",
                where=f"row {row_id}",
                hint="make rows with made_row or new_row and hand over the verdicts that admit them",
            )
