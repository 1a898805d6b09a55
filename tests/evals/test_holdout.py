from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from autosft.errors import HoldoutError
from autosft.evals import Seal, Suite, open_sealed, read_seal, record_scored, seal
from autosft.types import EvalItem, Message, Requirement


def suite(name: str = "twin", word: str = "secret") -> Suite:
    return Suite(
        name,
        tuple(
            EvalItem(
                f"{word}{k}",
                name,
                (Message("user", f"Tell me about the {word} thing number {k}."),),
                (Requirement("lab:lowercase"),),
                "lowercase",
            )
            for k in range(5)
        ),
    )


def hashed(texts: tuple[str, ...]) -> Mapping[str, Any]:
    return {"whole": sorted(hashlib.sha256(text.encode()).hexdigest()[:16] for text in texts)}


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    seal(suite(), tmp_path / "sealed", campaign=tmp_path / "campaign", digest=hashed)
    return tmp_path / "sealed"


def test_only_the_owner_can_read_and_the_seal_tells_nothing(sealed: Path) -> None:
    assert stat.S_IMODE((sealed / "items.jsonl").stat().st_mode) == 0o600
    assert stat.S_IMODE(sealed.stat().st_mode) == 0o700
    known = read_seal(sealed)
    assert known.n_items == 5 and len(known.digests["whole"]) == 5
    written = (sealed / "seal.json").read_text()
    assert "secret" not in written and "twin" not in written and "lowercase" not in written


def test_sealing_again_is_harmless_and_another_suite_is_refused(sealed: Path, tmp_path: Path) -> None:
    again: Seal = seal(suite(), sealed, campaign=tmp_path / "campaign", digest=hashed)
    assert again == read_seal(sealed)
    with pytest.raises(HoldoutError, match="another suite is sealed here"):
        seal(suite(word="other"), sealed, campaign=tmp_path / "campaign", digest=hashed)


def test_it_must_lie_outside_the_campaign_even_through_a_link(tmp_path: Path) -> None:
    campaign = tmp_path / "campaign"
    campaign.mkdir()
    (tmp_path / "link").symlink_to(campaign)
    for folder in (campaign, campaign / "a/b", tmp_path / "link/x", tmp_path / "out/../campaign/y"):
        with pytest.raises(HoldoutError, match="outside the campaign"):
            seal(suite(), folder, campaign=campaign, digest=hashed)
    assert not list(campaign.iterdir())


def test_a_suite_is_dev_or_held_out_never_both(tmp_path: Path) -> None:
    dev = Suite(
        "dev", tuple(EvalItem(f"d{k}", "dev", i.messages, (), "x") for k, i in enumerate(suite().items[:2]))
    )
    with pytest.raises(HoldoutError, match="shares 2 prompts"):
        seal(suite(), tmp_path / "s", campaign=tmp_path / "c", digest=hashed, dev=[suite(word="a"), dev])
    assert not (tmp_path / "s").exists()


def test_digests_that_hold_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(HoldoutError, match="hold the text"):
        seal(suite(), tmp_path / "s", campaign=tmp_path / "c", digest=lambda texts: {"texts": list(texts)})


def test_it_opens_once_after_the_end(sealed: Path) -> None:
    with pytest.raises(HoldoutError, match="has not ended"):
        open_sealed(sealed, campaign="c", checkpoint="k", finished=False)
    with pytest.raises(HoldoutError, match="not opened for this checkpoint"):
        record_scored(sealed, campaign="c", checkpoint="k", summary={})
    assert open_sealed(sealed, campaign="c", checkpoint="k", finished=True) == suite()
    # A killed scoring is repeated, but for the same checkpoint only.
    assert open_sealed(sealed, campaign="c", checkpoint="k", finished=True).items == suite().items
    with pytest.raises(HoldoutError, match="was opened for"):
        open_sealed(sealed, campaign="c", checkpoint="better", finished=True)
    record_scored(sealed, campaign="c", checkpoint="k", summary={"score": 0.5})
    with pytest.raises(HoldoutError, match="scored already"):
        open_sealed(sealed, campaign="c", checkpoint="k", finished=True)
    with pytest.raises(HoldoutError, match="scored already"):
        record_scored(sealed, campaign="c", checkpoint="k", summary={"score": 0.9})
    assert sorted(os.listdir(sealed)) == ["items.jsonl", "opened.json", "scored.json", "seal.json"]


def test_changed_items_and_broken_seals_are_noticed(sealed: Path, tmp_path: Path) -> None:
    with (sealed / "items.jsonl").open("a") as stream:
        stream.write("\n")
    with pytest.raises(HoldoutError, match="not those that were sealed"):
        open_sealed(sealed, campaign="c", checkpoint="k", finished=True)
    (sealed / "seal.json").write_text("{}")
    with pytest.raises(HoldoutError, match="unreadable seal"):
        read_seal(sealed)
    with pytest.raises(HoldoutError, match="nothing is sealed"):
        read_seal(tmp_path / "nowhere")
