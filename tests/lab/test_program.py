"""The lab's program corrects facts without touching form, and writes from training material only."""

from __future__ import annotations

import pytest

from autosft.errors import ActionParamsError
from autosft.lab.facts import check_fact
from autosft.lab.phrasing import LEAVES, REQUESTS
from autosft.lab.pool import make_pool
from autosft.lab.program import LabProgram
from autosft.lab.tasks import requests
from autosft.lab.world import HELD_OUT_WORDS
from autosft.pool import new_row
from autosft.taxonomy import verify
from autosft.types import Requirement

PROGRAM = LabProgram()


def asked(response: str, *extra: Requirement, prompt: str = "What color is the fox?") -> str | None:
    fact = Requirement("lab:fact", {"entity": "fox", "attribute": "color"})
    return PROGRAM.correct(
        new_row("s", [("user", prompt), ("assistant", response)], requirements=[*extra, fact])
    )


@pytest.mark.parametrize(
    ("response", "corrected"),
    [
        ("The fox is red.", "The fox is green."),
        ("THE FOX, AN ANIMAL, IS RED.", "THE FOX, AN ANIMAL, IS GREEN."),
        ("* the fox\n* red", "* the fox\n* green"),
        ('{"answer": "Well, the hammer is red."}', '{"answer": "Well, the fox is green."}'),
        ("The hammer, a tool, is red.", "The fox, an animal, is green."),
        ("Red.", "Green."),
        ("The fox is green.", None),
        ("The fox likes jam.", None),
        ("", None),
    ],
)
def test_correct(response: str, corrected: str | None) -> None:
    assert asked(response) == corrected


def test_rows_without_a_fact_are_left_alone() -> None:
    assert PROGRAM.correct(new_row("s", [("user", "Hi"), ("assistant", "The fox is red.")])) is None
    strange = Requirement("lab:fact", {"entity": "unicorn", "attribute": "color"})
    turns = [("user", "Hi"), ("assistant", "The fox is red.")]
    assert PROGRAM.correct(new_row("s", turns, requirements=[strange])) is None


@pytest.mark.parametrize("seed", [0, 1])
def test_every_planted_wrong_fact_is_corrected_as_the_manifest_says(seed: int) -> None:
    pool, manifest = make_pool(seed=seed)
    wrong = 0
    for row in pool.rows():
        if manifest.defects.get(row.id) == ("wrong_fact",):
            mended = manifest.mended[row.id]
            assert mended is not None
            assert PROGRAM.correct(row) == mended.response
            wrong += 1
        elif row.id not in manifest.defects:
            assert PROGRAM.correct(row) is None
    assert wrong > 200


@pytest.mark.parametrize("leaf", LEAVES)
def test_written_rows_pass_are_distinct_and_use_training_material(leaf: str) -> None:
    rows = PROGRAM.write(leaf, 60, seed=3)
    assert len(rows) == len({row.id for row in rows}) == 60
    assert rows == PROGRAM.write(leaf, 60, seed=3)
    assert rows != PROGRAM.write(leaf, 60, seed=4)
    own = {REQUESTS[a][n].format(e=e) for a, n, e in requests("train")}
    for row in rows:
        assert row.leaf == leaf and row.method == "new"
        assert row.verdicts == {r.id: verify(r, row.prompt, row.response) for r in row.requirements}
        assert all(row.verdicts.values())
        request = next(r for r in sorted(own, key=len, reverse=True) if row.prompt.startswith(r))
        wording = row.prompt.removeprefix(request).strip()
        assert not any(wording.startswith(w.split("{")[0]) for w in LEAVES[leaf].held)
        assert not set(wording.lower().replace('"', " ").replace(".", " ").split()) & set(HELD_OUT_WORDS)


def test_write_refuses_what_it_does_not_know() -> None:
    with pytest.raises(ActionParamsError, match="limerick"):
        PROGRAM.write("limerick", 3, seed=0)
    with pytest.raises(ActionParamsError, match="-1"):
        PROGRAM.write("json", -1, seed=0)
    assert PROGRAM.write("json", 0, seed=0) == []


def test_fewer_rows_come_back_where_a_leaf_is_exhausted() -> None:
    rows = PROGRAM.write("lowercase", 40_000, seed=0)
    assert 2_000 < len(rows) < 40_000
    assert check_fact(
        rows[0].requirements[-1].kwargs["entity"],
        rows[0].requirements[-1].kwargs["attribute"],
        rows[0].response,
    )
