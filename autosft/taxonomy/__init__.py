"""Requirements a program can decide: verifiers, compositions of them, and the tree of leaves over both."""

from __future__ import annotations

from autosft.taxonomy.compose import compose
from autosft.taxonomy.infer import annotate, infer_requirements
from autosft.taxonomy.supply import Supply, assign, leaves_of_rows, row_verdicts, supply
from autosft.taxonomy.tree import Leaf, Taxonomy
from autosft.taxonomy.verifiers import VERIFIERS, Verifier, check_requirement, verify

__all__ = [
    "VERIFIERS",
    "Leaf",
    "Supply",
    "Taxonomy",
    "Verifier",
    "annotate",
    "assign",
    "check_requirement",
    "compose",
    "infer_requirements",
    "leaves_of_rows",
    "row_verdicts",
    "supply",
    "verify",
]
