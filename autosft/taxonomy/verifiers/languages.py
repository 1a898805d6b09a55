"""Language detection with a fixed seed: one verdict a text in every run, order and process."""

from __future__ import annotations

import functools
from typing import Any

from autosft.errors import VerifierError


def is_language(text: str, code: str) -> bool:
    """Return whether a text is detected as a language; a text without detectable features counts as it
    (IFEval).

    Args:
        text: Any text.
        code: ISO 639-1 code, for Chinese `zh-cn` or `zh-tw`.

    Raises:
        VerifierError: The package langdetect is not installed.
    """
    factory, undetectable = _detector()
    detector = factory.create()
    # Half of a surrogate pair is no character of any language, and the detector's tables hold none.
    detector.append(text.encode("utf-8", "replace").decode("utf-8"))
    try:
        return bool(detector.detect() == code)
    except undetectable:
        return True


def language_odds(text: str) -> dict[str, float]:
    """Return language code -> probability, the same in every process; empty where a text has no features.

    Raises:
        VerifierError: The package langdetect is not installed.
    """
    factory, undetectable = _detector()
    detector = factory.create()
    detector.append(text.encode("utf-8", "replace").decode("utf-8"))
    try:
        return {found.lang: float(found.prob) for found in detector.get_probabilities()}
    except undetectable:
        return {}


@functools.cache
def _detector() -> tuple[Any, type[Exception]]:
    try:
        from langdetect import PROFILES_DIRECTORY, DetectorFactory, LangDetectException
    except ImportError:
        raise VerifierError(
            "the language verifiers need the package langdetect", hint="pip install langdetect"
        ) from None
    # An own factory: the package's module-wide one has no seed, and other code may share it.
    factory = DetectorFactory()
    factory.load_profile(PROFILES_DIRECTORY)
    factory.seed = 0
    return factory, LangDetectException
