"""Programs that know right answers or write rows: a closed listing of names."""

from __future__ import annotations

import functools
import importlib
from typing import Protocol, runtime_checkable

from autosft.errors import ActionError
from autosft.types import Row

# Programs live in packages above this one, so they are named here and imported when an action asks for them.
PROGRAMS = {"lab": ("autosft.lab.program", "LabProgram")}


@runtime_checkable
class Program(Protocol):
    """A deterministic author of answers and rows.

    Attributes:
        name: Name used in action parameters.
        fingerprint: Changes whenever the program would write something else.
    """

    name: str
    fingerprint: str

    def correct(self, row: Row) -> str | None:
        """Return the right answer in the row's form, or None where the program does not know one."""
        ...

    def write(self, leaf: str, n: int, seed: int) -> list[Row]:
        """Return up to n new rows for a leaf (made with `new_row`), fewer where it cannot write more."""
        ...


@functools.cache
def load_program(name: str) -> Program:
    """Return a program of the listing.

    Raises:
        ActionError: The name is not listed.
    """
    if name not in PROGRAMS:
        raise ActionError(f"no program named {name!r}", hint=f"known: {', '.join(PROGRAMS)}")
    module, attribute = PROGRAMS[name]
    program = getattr(importlib.import_module(module), attribute)()
    if not isinstance(program, Program):
        raise ActionError(f"{module}.{attribute} does not have the Program methods")
    return program
