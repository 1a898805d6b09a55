"""Runs code of answers in confined processes of their own; what they return is plain data.

Every run has a new process group and an empty working folder that is removed afterwards. What confines it
beyond that depends on the kernel; `isolation` says what holds here. Without Linux only time, memory and file
limits do.
"""

from __future__ import annotations

from autosft.taxonomy.sandbox.run import (
    Call,
    Limits,
    Reply,
    TestRun,
    answer_calls,
    isolation,
    run_tests,
)
from autosft.taxonomy.sandbox.values import Opaque, decode, encode

__all__ = [
    "Call",
    "Limits",
    "Opaque",
    "Reply",
    "TestRun",
    "answer_calls",
    "decode",
    "encode",
    "isolation",
    "run_tests",
]
