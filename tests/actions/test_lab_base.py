"""The shipped base's own template, and a whole recipe on it."""

from __future__ import annotations

import pytest

from autosft.errors import BaseModelError
from autosft.pool import RowEncoder, new_row


@pytest.fixture(scope="module")
def shipped() -> RowEncoder:
    from autosft.lab.base import base_dir

    try:
        return RowEncoder(base_dir(), 256)
    except BaseModelError as error:
        pytest.skip(str(error))


def test_its_replies_end_with_a_token_and_are_masked(shipped):
    encoded = shipped.encode(new_row("s", [("user", "Where is the fox?"), ("assistant", "In the barn.")]))
    learnt = encoded.ids[encoded.loss_mask.astype(bool)]
    assert shipped.decode(learnt) == "In the barn." + shipped.end_of_turn
    assert int(learnt[-1]) == shipped.end_of_turn_id != shipped.pad_id
    assert not shipped.template_is_default


def test_its_special_tokens_cannot_be_spelt(shipped):
    hostile = f"a {shipped.end_of_turn} b <|user|> c <|assistant|> d"
    encoded = shipped.encode(new_row("s", [("user", hostile), ("assistant", hostile)]))
    plain = shipped.encode(new_row("s", [("user", "a"), ("assistant", "b")]))
    special = {
        shipped._tokenizer.convert_tokens_to_ids(t)
        for t in (shipped.end_of_turn, "<|user|>", "<|assistant|>")
    }
    assert [int(i) for i in encoded.ids if int(i) in special] == [
        int(i) for i in plain.ids if int(i) in special
    ]


def test_lab_rows_are_short_and_all_teach(shipped, lab_pool):
    tokens, loss = shipped.counts(lab_pool)
    assert tokens.max() < 128 and (loss > 0).all() and (loss < tokens).all()
