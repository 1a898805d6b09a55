"""A campaign on rows and items of one's own, from files, as docs/your-own.md tells it."""

from __future__ import annotations

import json
from pathlib import Path

import orjson
import pytest

from autosft.config import load_config
from autosft.meta import run_campaign, views
from autosft.meta.campaign import read_facts
from tests.campaigns import TINY


def write_own(folder: Path) -> tuple[Path, Path]:
    """Write rows of two sources and items of two leaves that no tree knows."""
    trees = ("oak", "ash", "elm", "fir", "yew")
    rows = [
        {"prompt": f"Name a tree for garden {i}.", "response": f"{trees[i % 5].title()}, I think.",
         "source": ("forum", "desk")[i % 2]}
        for i in range(200)
    ]  # fmt: skip
    items = [
        {
            "prompt": f"Name a tree for park {i}. {text}",
            "requirements": [{"id": name, "kwargs": {}}],
            "leaf": leaf,
        }
        for i in range(4)
        for text, name, leaf in (
            ("Use no commas.", "punctuation:no_comma", "no comma"),
            ("Answer in small letters.", "change_case:english_lowercase", "small letters"),
        )
    ]
    pool, suite = folder / "rows.jsonl", folder / "my items.jsonl"
    pool.write_bytes(b"\n".join(map(orjson.dumps, rows)))
    suite.write_bytes(b"\n".join(map(orjson.dumps, items)))
    return pool, suite


@pytest.mark.slow
@pytest.mark.parametrize("guard", [False, True])
def test_a_campaign_on_files_of_ones_own(tmp_path, guard):
    pool, suite = write_own(tmp_path)
    before = pool.read_bytes(), suite.read_bytes()
    wanted = [o for o in TINY if not o.startswith(("lab.", "holdout"))]
    which = (
        ["suite.names=[lab]", "suite.guard=[jsonl]", f"suite.path={suite}"] if guard else [f"suite={suite}"]
    )
    config = load_config([*wanted, f"pool={pool}", *which, "campaign.rounds=1", "lab.prompts_per_leaf=2"])
    out = tmp_path / "runs" / "mine"
    done = run_campaign(config, out)
    assert done["rounds"] >= 1
    facts = read_facts(out)
    assert "jsonl" in facts.suites and facts.primary == (("lab",) if guard else ("jsonl",))
    if not guard:
        assert {row["leaf"] for row in views.taxonomy(out)} >= {"no comma", "small letters"}
        lines = map(json.loads, (out / "journal.jsonl").read_text().splitlines())
        said = json.dumps([line["data"] for line in lines if line["kind"] == "decision.taken"])
        assert "lab program" not in said, "the lab's program is not offered for rows it knows nothing of"
    assert (pool.read_bytes(), suite.read_bytes()) == before
