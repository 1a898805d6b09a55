"""Spend is reserved before and settled after; caps hold under threads and across crashes (I9)."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autosft.errors import SpendCapError
from autosft.spend import LEDGER, Spend


def test_a_reservation_counts_until_it_is_settled(tmp_path):
    spend = Spend(tmp_path, {"usd": 10.0})
    key = spend.reserve("call", "usd", 6.0, where="round 1")
    with pytest.raises(SpendCapError, match="usd cap 10 would be exceeded: 6 spent, 5 more needed"):
        spend.reserve("call", "usd", 5.0, where="round 1")
    spend.settle(key, 1.0)
    spend.reserve("call", "usd", 5.0, where="round 1")
    assert spend.spent["usd"] == 6.0


def test_a_crash_in_mid_call_is_charged_in_full(tmp_path):
    Spend(tmp_path, {"usd": 10.0}).reserve("call", "usd", 6.0, where="round 1")
    again = Spend(tmp_path, {"usd": 10.0})
    assert again.spent["usd"] == 6.0
    with pytest.raises(SpendCapError):
        again.reserve("call", "usd", 5.0, where="round 1")


def test_a_torn_line_is_left_out(tmp_path):
    Spend(tmp_path, {}).reserve("a", "usd", 1.0, where="")
    with (tmp_path / LEDGER).open("ab") as stream:
        stream.write(b'{"event":"reserved","ke')
    assert Spend(tmp_path, {}).spent == {"usd": 1.0}


@given(st.lists(st.floats(0.01, 3.0), min_size=4, max_size=40), st.floats(1.0, 8.0))
def test_four_threads_never_pass_a_cap(tmp_path_factory, amounts, cap):
    spend = Spend(tmp_path_factory.mktemp("spend"), {"usd": cap})
    most = []

    def work(mine):
        for amount in mine:
            try:
                key = spend.reserve("call", "usd", amount, where="")
            except SpendCapError:
                continue
            most.append(spend.spent["usd"])
            spend.settle(key, amount / 2)

    threads = [threading.Thread(target=work, args=(amounts[i::4],)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most, default=0.0) <= cap + 1e-9
    assert spend.spent.get("usd", 0.0) <= cap + 1e-9
