"""Whether a character is an emoji, by the package emoji."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable

from autosft.errors import VerifierError


def is_emoji(character: str) -> bool:
    """Return whether a character is an emoji by itself.

    Raises:
        VerifierError: The package emoji is not installed.
    """
    return _known()(character)


@functools.cache
def _known() -> Callable[[str], bool]:
    try:
        known: Callable[[str], bool] = importlib.import_module("emoji").is_emoji
    except ImportError:
        raise VerifierError(
            "this requirement needs the package emoji", hint="pip install 'autosft[eval]'"
        ) from None
    return known
