"""Many texts to token ids at once, as flat arrays.

fastokens does it where its ids are those of the tokenizers library, which is asked again about a sample of
every batch: one difference, and that library does the whole batch and all later ones.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autosft.engine.words import IntArray

SAMPLE_EVERY = 64


class FlatTokenizer:
    """Tokenizes batches of texts without special tokens of its own.

    Args:
        backend: A `tokenizers.Tokenizer`, which decides what is right.
        file: Its `tokenizer.json`, or None where there is none to read.
    """

    def __init__(self, backend: Any, file: Path | None) -> None:
        self._backend = backend
        self._fast = None if file is None else _fast(file)

    @property
    def name(self) -> str:
        """The library in use: `fastokens` or `tokenizers`."""
        return "tokenizers" if self._fast is None else "fastokens"

    def encode(self, texts: Sequence[str]) -> tuple[NDArray[np.int32], IntArray]:
        """Return (ids, offsets): text i is `ids[offsets[i]:offsets[i + 1]]`."""
        if self._fast is not None and texts:
            flat, places = self._fast.encode_batch_flat(list(texts))
            ids = np.frombuffer(flat, dtype=np.uint32).astype(np.int32)
            offsets = np.frombuffer(places, dtype=np.uint64).astype(np.int64)
            if self._agrees(texts, ids, offsets):
                return ids, offsets
            self._fast = None
        found = [e.ids for e in self._backend.encode_batch_fast(list(texts), add_special_tokens=False)]
        offsets = np.cumsum([0, *map(len, found)], dtype=np.int64)
        return np.array([token for part in found for token in part], dtype=np.int32), offsets

    def _agrees(self, texts: Sequence[str], ids: NDArray[np.int32], offsets: IntArray) -> bool:
        sample = range(len(texts) % SAMPLE_EVERY // 2, len(texts), SAMPLE_EVERY)
        asked = self._backend.encode_batch_fast([texts[i] for i in sample], add_special_tokens=False)
        for i, wanted in zip(sample, asked, strict=True):
            if ids[offsets[i] : offsets[i + 1]].tolist() != wanted.ids:
                warnings.warn(
                    f"fastokens and tokenizers disagree on a text of {len(texts[i])} characters; "
                    "tokenizers is used from here on",
                    RuntimeWarning,
                    stacklevel=3,
                )
                return False
        return True


def _fast(file: Path) -> Any:
    try:
        import fastokens

        return fastokens.Tokenizer.from_file(str(file))
    except Exception:  # Any kind it does not support; the other library reads all.
        return None
