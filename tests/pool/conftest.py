"""Encoders over small tokenizers, made once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from autosft.pool import RowEncoder
from tests.pool.tokenizers_for_tests import write_tokenizer

MakeEncoder = Callable[..., RowEncoder]


@pytest.fixture(scope="session")
def make_encoder(tmp_path_factory: pytest.TempPathFactory) -> MakeEncoder:
    """Return a function (template, kind=, sequence_tokens=) -> encoder; equal tokenizers are trained once."""
    folders: dict[tuple[str | None, str, str | None], Path] = {}

    def make(
        template: str | None, *, kind: str = "bytes", sequence_tokens: int = 256, eos: str | None = "</s>"
    ) -> RowEncoder:
        key = (template, kind, eos)
        if key not in folders:
            folders[key] = write_tokenizer(tmp_path_factory.mktemp("tok"), template, kind=kind, eos=eos)
        return RowEncoder(folders[key], sequence_tokens)

    return make


@pytest.fixture
def benchmark_seconds() -> Callable[[float], AbstractContextManager[None]]:
    """Return a context manager that fails where the processor time spent inside exceeds a bound."""

    @contextmanager
    def bounded(seconds: float) -> Iterator[None]:
        start = time.process_time()
        yield
        assert time.process_time() - start < seconds

    return bounded
