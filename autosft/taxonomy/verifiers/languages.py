"""Language detection with a fixed seed: one verdict a text in every run, order and process."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

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
    detector, undetectable = _detector()
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
    detector, undetectable = _detector()
    detector.append(text.encode("utf-8", "replace").decode("utf-8"))
    try:
        return {found.lang: float(found.prob) for found in detector.get_probabilities()}
    except undetectable:
        return {}


def _detector() -> tuple[Any, type[Exception]]:
    factory, kind, undetectable = _factory()
    return kind(factory), undetectable


@functools.cache
def _factory() -> tuple[Any, Any, type[Exception]]:
    try:
        from langdetect import PROFILES_DIRECTORY, DetectorFactory, LangDetectException
        from langdetect.detector import Detector
    except ImportError:
        raise VerifierError(
            "the language verifiers need the package langdetect", hint="pip install langdetect"
        ) from None
    # An own factory: the package's module-wide one has no seed, and other code may share it.
    factory = DetectorFactory()
    factory.load_profile(PROFILES_DIRECTORY)
    factory.seed = 0
    return factory, _faster(Detector, factory), LangDetectException


def _faster(detector: Any, factory: Any) -> Any:
    """Return the detector with its inner loops on arrays: the same operations in the same order and
    precision, so the same verdicts (tests compare them), in a fraction of the time."""
    chances: dict[str, np.ndarray[Any, Any]] = {}

    class Faster(detector):  # type: ignore[misc]
        def _init_probability(self) -> Any:
            return np.full(len(self.langlist), 1.0 / len(self.langlist))

        def _update_lang_prob(self, prob: Any, word: str, alpha: float) -> bool:
            chance = chances.get(word)
            if chance is None:
                chance = chances[word] = np.array(factory.word_lang_prob_map[word], dtype=np.float64)
            prob *= alpha / self.BASE_FREQ + chance
            return True

        def _normalize_prob(self, prob: Any) -> float:
            # The sum of a list: an array's adds up in another order.
            prob /= sum(prob.tolist())
            return float(prob.max())

    return Faster
