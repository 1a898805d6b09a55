"""Sentences and word tokens as NLTK splits them; NLTK is imported on first use.

Its data is looked for where NLTK itself looks (`NLTK_DATA` and the usual folders), then in the wheel of
llama-index-core, which carries the sentence model and the stop words.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

from autosft.errors import VerifierError

_WHEEL_DATA = Path("core/_static/nltk_cache")


@functools.cache
def nltk() -> Any:
    """Return the package nltk, its search path completed.

    Raises:
        VerifierError: It is not installed.
    """
    try:
        package = importlib.import_module("nltk")
    except ImportError:
        raise VerifierError(
            "this requirement needs the package nltk", hint="pip install 'autosft[eval]'"
        ) from None
    spec = importlib.util.find_spec("llama_index")
    for root in (spec.submodule_search_locations or []) if spec else []:
        folder = Path(root) / _WHEEL_DATA
        if folder.is_dir() and str(folder) not in package.data.path:
            package.data.path.append(str(folder))
    return package


def sentences(text: str) -> list[str]:
    """Return the sentences of an English text.

    Raises:
        VerifierError: NLTK or its sentence model is not installed.
    """
    return list(_with_data(lambda package: package.sent_tokenize(text)))


def word_tokens(text: str) -> list[str]:
    """Return the word tokens of an English text, punctuation marks among them.

    Raises:
        VerifierError: NLTK or its sentence model is not installed.
    """
    return list(_with_data(lambda package: package.word_tokenize(text)))


def tags(tokens: list[str]) -> list[str]:
    """Return the part-of-speech tag of each token (Penn Treebank).

    Raises:
        VerifierError: NLTK or its tagger's weights are not installed.
    """
    return [tag for _, tag in _with_data(lambda package: package.pos_tag(tokens))]


def _with_data(run: Callable[[Any], Any]) -> Any:
    try:
        return run(nltk())
    except LookupError as error:
        # NLTK reports missing data by a bare LookupError; a KeyError or IndexError would be a fault.
        if type(error) is LookupError:
            raise missing_data() from None
        raise


def missing_data() -> VerifierError:
    """Return the error for absent language data."""
    return VerifierError(
        "NLTK's language data (punkt_tab, stopwords, averaged_perceptron_tagger_eng) is not installed",
        where="requirement verifiers",
        hint="run `python -m nltk.downloader punkt_tab stopwords averaged_perceptron_tagger_eng`; offline, "
        "`pip install --no-deps llama-index-core` brings the first two; or set NLTK_DATA to their folder",
    )
