"""IFBench's requirements as the package if_verifiable decides them, without downloads and surprises."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from typing import Any

from autosft.errors import VerifierError
from autosft.taxonomy.verifiers.nltk_text import missing_data, nltk

INSTALL = "pip install 'autosft[eval]'"


def decide(requirement_id: str, response: str, **arguments: Any) -> bool:
    """Return the library's verdict on a text; a text that makes its checker raise fails.

    Raises:
        VerifierError: The library or its language data is not installed.
    """
    checker = _checker(requirement_id, tuple(sorted(arguments.items())))
    try:
        return bool(checker.check_following(response))
    except LookupError as error:
        # NLTK reports missing data by a bare LookupError; a KeyError or IndexError is the checker's own.
        if type(error) is LookupError:
            raise missing_data() from None
        return False
    except Exception:
        # Checkers were written for plausible answers: a bare carriage return raises in the CSV ones, for
        # instance. What cannot be checked does not follow the instruction.
        return False


@functools.lru_cache(maxsize=4096)
def _checker(requirement_id: str, arguments: tuple[tuple[str, Any], ...]) -> Any:
    checker = _registry()[requirement_id](requirement_id)
    checker.build_description(**dict(arguments))
    return checker


@functools.cache
def _registry() -> Mapping[str, Any]:
    toolkit = nltk()
    fetch = toolkit.download
    # The library downloads data when it is imported; verifiers do not use the network.
    toolkit.download = lambda *args, **kwargs: False
    try:
        module = importlib.import_module("if_verifiable.ifbench.instructions_registry")
    except ImportError as error:
        what = f"IFBench's requirements need the package if-verifiable ({error})"
        raise VerifierError(what, hint=INSTALL) from None
    finally:
        toolkit.download = fetch
    registry: Mapping[str, Any] = module.INSTRUCTION_DICT
    return registry
