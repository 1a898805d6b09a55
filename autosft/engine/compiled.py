"""Functions compiled when they are first called: commands that need none of them load no compiler."""

from __future__ import annotations

import threading
from typing import Any

_LOCK = threading.RLock()


class Kernel:
    """A loop that numba compiles on its first call, without the interpreter's lock, once for this machine.

    The compiled form is cached beside its source, or in the user's cache folder where that is read-only.
    """

    def __init__(self, function: Any) -> None:
        self._function = function
        self._compiled: Any = None
        self.__doc__ = function.__doc__

    def __call__(self, *arguments: Any) -> Any:
        """Run it."""
        return self.compiled()(*arguments)

    def compiled(self) -> Any:
        """Return numba's dispatcher; kernels that this one calls are compiled with it."""
        with _LOCK:
            if self._compiled is None:
                import numba

                names = self._function.__globals__
                for name in self._function.__code__.co_names:
                    # The compiler knows its own functions, not this class.
                    if isinstance(names.get(name), Kernel):
                        names[name] = names[name].compiled()
                self._compiled = numba.njit(nogil=True, cache=True)(self._function)
            return self._compiled


def compiled(function: Any) -> Any:
    """Make a `Kernel` of a function."""
    return Kernel(function)
