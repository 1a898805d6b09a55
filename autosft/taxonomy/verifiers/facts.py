"""Fact tables that verifiers may ask: in packages above this one, loaded by a closed listing."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable

from autosft.errors import VerifierError

# The lab's world is data of a package that itself uses verifiers. Naming its module here, and importing it
# when a fact is checked, keeps the imports of the layers pointing downward; nothing else can be named.
FACT_TABLES = {"lab": "autosft.lab.facts"}


def check_fact(entity: str, attribute: str, response: str, *, table: str = "lab") -> bool:
    """Return whether a response states an entity's attribute rightly, by the table's own rule.

    Raises:
        VerifierError: The table has no such entity or attribute.
    """
    try:
        return bool(_checker(table)(entity, attribute, response))
    except (KeyError, ValueError) as error:
        what = f"no fact {attribute!r} of {entity!r} in the table {table!r}: {error}"
        raise VerifierError(
            what, where="requirement lab:fact", hint="take both from the lab's facts"
        ) from None


@functools.cache
def _checker(table: str) -> Callable[[str, str, str], bool]:
    if table not in FACT_TABLES:
        raise VerifierError(f"unknown fact table {table!r}", hint=f"known: {', '.join(FACT_TABLES)}")
    check: Callable[[str, str, str], bool] = importlib.import_module(FACT_TABLES[table]).check_fact
    return check
