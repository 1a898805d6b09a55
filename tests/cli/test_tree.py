"""`autosft taxonomy --tree`: the shipped trees, and what is no tree."""

from __future__ import annotations

import json

import pytest

from tests.campaigns import run_cli


@pytest.mark.parametrize(("name", "leaves"), [("lab", 17), ("mbpp_plus", 5)])
def test_a_tree_is_shown_with_what_its_leaves_demand(name: str, leaves: int) -> None:
    shown = run_cli("taxonomy", "--tree", name)
    assert shown.returncode == 0 and f"{leaves} leaves" in shown.stdout
    tree = json.loads(run_cli("taxonomy", "--tree", name, "--json").stdout)
    assert len(tree["leaves"]) == leaves and all(leaf["passes"] for leaf in tree["leaves"].values())


def test_what_is_no_tree_is_named_with_those_there_are() -> None:
    shown = run_cli("taxonomy", "--tree", "nope")
    assert shown.returncode == 2 and "lab, ifeval, ifbench" in shown.stderr
    assert "Traceback" not in shown.stderr
