"""Language detection with a fixed seed: one verdict a text in every run, order and process."""

from __future__ import annotations

import functools
import math
import random
import re
from collections.abc import Mapping
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
    odds = language_odds(text)
    return odds is None or next(iter(odds), None) == code


@functools.lru_cache(maxsize=256)
def language_odds(text: str) -> Mapping[str, float] | None:
    """Return language code -> probability (above .1), likeliest first, the same in every process.

    The method, its profiles and its random draws are those of the package langdetect with seed 0, and so are
    the results (tests compare them); here its loops run on arrays.

    Returns:
        None where a text has no features to judge.

    Raises:
        VerifierError: The package langdetect is not installed.
    """
    # Half of a surrogate pair is no character of any language, and the profiles hold none.
    return _detector().odds(text.encode("utf-8", "replace").decode("utf-8"))


class _Detector:
    """langdetect's naive Bayes over 1- to 3-grams, on arrays.

    Attributes:
        languages: Codes in the order of the package.
        grams: int64, sorted: the known n-grams, one packed number each.
        chances: float64 [n-grams, languages]: the profiles' frequencies.
    """

    SPACE = 32
    PER_CHAR = 21  # bits of a code point

    def __init__(self, kind: Any, factory: Any) -> None:
        self.kind, self.factory = kind, factory
        self.languages: list[str] = list(factory.langlist)
        words = [word for word in factory.word_lang_prob_map if 0 < len(word) <= 3]
        packed = np.array([self._pack(word) for word in words], dtype=np.int64)
        order = np.argsort(packed)
        self.grams = packed[order]
        self.chances = np.array([factory.word_lang_prob_map[words[i]] for i in order], dtype=np.float64)
        # What the package makes of a code point, filled as code points are met; 0 is "not met yet".
        self.normal = np.zeros(0x110000, dtype=np.int64)
        self.upper = np.zeros(0x110000, dtype=bool)

    def _pack(self, word: str) -> int:
        number = 0
        for char in word:
            number = number << self.PER_CHAR | ord(char)
        return number

    def odds(self, text: str) -> dict[str, float] | None:
        """Return the probabilities above the package's threshold, likeliest first, or None."""
        cleaner = self.kind(self.factory)
        # Longer texts are cut by the package as well, after links are taken out.
        text = cleaner.MAIL_RE.sub(" ", cleaner.URL_RE.sub(" ", text))
        text = _vietnamese(text)[: cleaner.max_text_length]
        cleaner.text = re.sub(" {2,}", " ", text)
        if not cleaner.text.isascii():  # only then may Latin letters be in the way of another script
            cleaner.cleaning_text()
        features = self._features(cleaner.text)
        if not len(features):
            return None
        total = self._trials(features, cleaner)
        found = {code: p for code, p in zip(self.languages, total, strict=True) if p > cleaner.PROB_THRESHOLD}
        return dict(sorted(found.items(), key=lambda pair: -pair[1]))

    def _features(self, text: str) -> np.ndarray[Any, Any]:
        """Return places in `grams`, in the order of the text: at each character its 1-, 2- and 3-gram."""
        codes = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
        for code in np.unique(codes[self.normal[codes] == 0]):
            normal = _normal(chr(code))
            self.normal[code] = ord(normal)
            self.upper[ord(normal)] = normal.isupper()
        chars = np.concatenate(([self.SPACE], self.normal[codes]))
        space = chars == self.SPACE
        kept = np.ones(len(chars), dtype=bool)
        kept[1:] = ~(space[1:] & space[:-1])
        chars = chars[kept]
        now, before = chars[1:], chars[:-1]
        earlier = np.concatenate(([0], chars[:-2]))[: len(now)]
        # Within a run of capitals nothing counts; an n-gram does not reach back over a space.
        counts = ~(self.upper[now] & self.upper[before])
        pairs = before << self.PER_CHAR | now
        packed = np.stack([now, pairs, earlier << 2 * self.PER_CHAR | pairs], axis=1)
        valid = np.stack([now != self.SPACE, np.ones(len(now), dtype=bool), before != self.SPACE], axis=1)
        wanted = packed[valid & counts[:, None]]
        places = np.searchsorted(self.grams, wanted)
        places[places == len(self.grams)] = 0
        known: np.ndarray[Any, Any] = places[self.grams[places] == wanted]
        return known

    def _trials(self, features: np.ndarray[Any, Any], cleaner: Any) -> list[float]:
        """Return the mean posterior of the trials, each over n-grams drawn until one language wins."""
        walk, languages = _walk(), len(self.languages)
        draws = _Draws(int(self.factory.seed))
        shift = 32 - len(features).bit_length()
        total = [0.0] * languages
        for _ in range(cleaner.n_trial):
            alpha = cleaner.alpha + draws.gauss() * cleaner.ALPHA_WIDTH
            prob = np.full(languages, 1.0 / languages)
            draws.place = walk(
                prob,
                self.chances,
                features,
                alpha / cleaner.BASE_FREQ,
                draws.words,
                draws.place,
                shift,
                cleaner.CONV_THRESHOLD,
                cleaner.ITERATION_LIMIT,
            )
            total = [t + p / cleaner.n_trial for t, p in zip(total, prob.tolist(), strict=True)]
        return total


class _Draws:
    """The draws of `random.Random(seed)` from its raw 32-bit numbers, so that compiled code can take some."""

    #: More than seven trials of a thousand steps take, half of the numbers being refused at worst.
    ENOUGH = 1 << 15

    def __init__(self, seed: int) -> None:
        self.words, self.place, self._next = _raw_numbers(seed, self.ENOUGH), 0, None

    _next: float | None

    def gauss(self) -> float:
        """Return what `random.Random.gauss(0, 1)` would."""
        if self._next is not None:
            found, self._next = self._next, None
            return found
        angle = self._uniform() * math.tau
        radius = math.sqrt(-2.0 * math.log(1.0 - self._uniform()))
        self._next = math.sin(angle) * radius
        return math.cos(angle) * radius

    def _uniform(self) -> float:
        high, low = (int(word) for word in self.words[self.place : self.place + 2])
        self.place += 2
        return ((high >> 5) * 67108864.0 + (low >> 6)) / 9007199254740992.0


@functools.lru_cache(maxsize=4)
def _raw_numbers(seed: int, n: int) -> np.ndarray[Any, Any]:
    draw = random.Random(seed)
    return np.array([draw.getrandbits(32) for _ in range(n)], dtype=np.int64)


@functools.cache
def _walk() -> Any:
    """Return the compiled inner loop; no reordered arithmetic, so each sum and product is the package's."""
    import numba

    @numba.njit(cache=True)
    def walk(prob, chances, features, weight, words, place, shift, enough, limit):  # type: ignore[no-untyped-def]
        step, n, languages = 0, len(features), len(prob)
        while True:
            drawn = words[place] >> shift
            place += 1
            if drawn >= n:
                continue
            row = chances[features[drawn]]
            for k in range(languages):
                prob[k] *= weight + row[k]
            if step % 5 == 0:
                total, best = 0.0, 0.0
                for k in range(languages):
                    total += prob[k]
                for k in range(languages):
                    prob[k] /= total
                    best = max(best, prob[k])
                if best > enough or step >= limit:
                    return place
            step += 1

    return walk


def _normal(char: str) -> str:
    from langdetect.utils.ngram import NGram

    return str(NGram.normalize(char))


def _vietnamese(text: str) -> str:
    """Compose Vietnamese letters as the package does; ASCII has none."""
    if text.isascii():
        return text
    from langdetect.utils.ngram import NGram

    return str(NGram.normalize_vi(text))


@functools.cache
def _detector() -> _Detector:
    try:
        from langdetect import PROFILES_DIRECTORY, DetectorFactory
        from langdetect.detector import Detector
    except ImportError:
        raise VerifierError(
            "the language verifiers need the package langdetect", hint="pip install langdetect"
        ) from None
    # An own factory: the package's module-wide one has no seed, and other code may share it.
    factory = DetectorFactory()
    factory.load_profile(PROFILES_DIRECTORY)
    factory.seed = 0
    return _Detector(Detector, factory)
