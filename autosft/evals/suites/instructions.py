"""Items of IFEval and IFBench from their published rows."""

from __future__ import annotations

from typing import Any

from autosft.errors import SuiteError, VerifierError
from autosft.evals.suites.sources import field
from autosft.evals.suites.suite import Suite
from autosft.taxonomy.verifiers.verdict import predicate
from autosft.types import EvalItem, Message, Requirement


def instruction_suite(name: str, rows: list[dict[str, Any]], where: str) -> Suite:
    """Return a suite of prompts with instruction ids; an item's leaf is named like its first instruction.

    Raises:
        SuiteError: A row lacks a field, or an instruction is unknown; names the row's key.
    """
    items = []
    for row in rows:
        key = str(field(row, ("key",), where))
        ids = field(row, ("instruction_id_list",), where)
        given = field(row, ("kwargs",), where)
        if len(ids) != len(given):
            raise SuiteError(f"{len(ids)} instructions have {len(given)} kwargs", where=f"{where}, key {key}")
        requirements = tuple(
            # Published rows pad arguments with nulls, which mean nothing.
            Requirement(i, {k: v for k, v in (kwargs or {}).items() if v is not None})
            for i, kwargs in zip(ids, given, strict=True)
        )
        try:
            for requirement in requirements:
                predicate(requirement.id, requirement.kwargs)
        except VerifierError as error:
            raise SuiteError(f"{error}", where=f"{where}, key {key}") from None
        leaf = requirements[0].id.split(":")[1]
        prompt = str(field(row, ("prompt",), where))
        items.append(EvalItem(key, name, (Message("user", prompt),), requirements, leaf))
    return Suite(name, tuple(items))
