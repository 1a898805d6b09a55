"""Verifiers: programs that decide whether a response meets a requirement. One file a verifier.

The id `family:name` is the file's path, `verifiers/<family>/<name>.py`; the files of this folder are the
closed listing, and nothing outside it is ever imported. A file holds a docstring (its first line describes
the requirement), `check(prompt, response, *, ...) -> bool` whose keyword arguments are the requirement's
arguments, and `EXAMPLE`, a passing and a failing response that tests and taxonomies execute.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.listing import VERIFIERS, Parameter, Verifier, nearest
from autosft.taxonomy.verifiers.verdict import check_requirement, loose_variants, verify

__all__ = [
    "VERIFIERS",
    "Example",
    "Parameter",
    "Verifier",
    "check_requirement",
    "loose_variants",
    "nearest",
    "verify",
]
