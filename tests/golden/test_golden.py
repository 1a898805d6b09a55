"""A tiny recipe, from its fingerprint to ten training losses, as it was recorded.

A difference means that old campaigns cannot be rebuilt or compared any more: find out why before you record
anew with `python -m tests.golden.regenerate`.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.golden.recorded import EXPECTED, SHAPES, record

pytestmark = pytest.mark.slow
# Threads, processors and versions of torch change the last bits of a float; ten steps amplify them little.
BAND = 0.02
EXACT = ("base", "pool", "recipe", "build", "files", "plan", "diffs", "contaminated", "rows")


@pytest.fixture(scope="module")
def expected() -> Any:
    return json.loads(EXPECTED.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return record(tmp_path_factory.mktemp("golden"))


@pytest.mark.parametrize("name", EXACT)
def test_what_a_recipe_builds(name: str, expected: Any, found: dict[str, Any]) -> None:
    assert found[name] == expected[name]


def test_row_ids_and_token_counts(expected: Any, found: dict[str, Any]) -> None:
    assert found["first_rows"] == expected["first_rows"]
    assert found["all_rows"] == expected["all_rows"]


@pytest.mark.parametrize("shape", SHAPES)
def test_decoded_loss_masks(shape: str, expected: Any, found: dict[str, Any]) -> None:
    assert found["masks"][shape] == expected["masks"][shape]


def test_masks_cover_every_reply_with_its_end_and_nothing_else(found: dict[str, Any]) -> None:
    for name, turns in SHAPES.items():
        learned = [part.split("⟧")[0] for part in found["masks"][name].split("⟦")[1:]]
        replies = [text for role, text in turns if role == "assistant"]
        assert len(learned) == len(replies), name
        for part, reply in zip(learned, replies, strict=True):
            assert part.startswith(reply) and len(part) > len(reply), (name, part)


def test_ten_training_losses(expected: Any, found: dict[str, Any]) -> None:
    assert len(found["losses"]) == 10
    assert found["losses"] == pytest.approx(expected["losses"], abs=BAND)
    assert found["losses"][-1] < found["losses"][0], "training lowers the loss"
