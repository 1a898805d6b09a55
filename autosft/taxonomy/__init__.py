"""Requirements a program can decide: verifiers, and the tree of leaves over them."""

from __future__ import annotations

from autosft.taxonomy.verifiers import VERIFIERS, Verifier, check_requirement, verify

__all__ = ["VERIFIERS", "Verifier", "check_requirement", "verify"]
