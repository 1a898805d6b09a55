"""Tests that need what most machines lack are opt-in, and skipped where one can see it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

OPT_IN = {
    "live": "needs a served language model",
    "gpu": "needs a CUDA device",
    "slurm": "needs a Slurm cluster",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    for name, need in OPT_IN.items():
        parser.addoption(f"--{name}", action="store_true", help=f"run the tests marked {name}: {need}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for name, need in OPT_IN.items():
        if not config.getoption(f"--{name}"):
            skip = pytest.mark.skip(reason=f"{need}; run with --{name}")
            for item in items:
                if name in item.keywords:
                    item.add_marker(skip)


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests share a cache among themselves, never the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTOSFT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
