"""Whole tiny campaigns whose agents talk to a local server: finished, resumed, replayed, attacked."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from autosft.config import load_config
from autosft.errors import ReplayError
from autosft.memory.transcripts import call_shares, context_meter, read_exchanges
from autosft.meta import run_campaign, views
from autosft.spend import spend_by_scope
from tests.campaigns import TINY, journal
from tests.llm.brains import role_of, sensible
from tests.llm.servers import Said, serving

pytestmark = pytest.mark.slow
KEY = "sk-very-secret-0123456789"
VARIANTS = ("base", "executor", "analysis", "synthesis", "all")


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("TEST_LLM_KEY", KEY)


def campaign(url: str, *more: str):
    return load_config(
        [
            *TINY,
            "campaign.seeds=0",
            "campaign.claim_seeds=0",
            "campaign.budget_tokens=2000",
            "policy=llm",
            f"llm.base_url={url}/v1",
            "llm.api_key_env=TEST_LLM_KEY",
            "llm.timeout_s=5",
            *more,
        ]
    )


def decisions(out: Path) -> list[dict]:
    lines = map(json.loads, (out / "journal.jsonl").read_text().splitlines())
    return [line["data"] for line in lines if line["kind"] == "decision.taken"]


def test_all_components_finish_replay_offline_and_leave_no_key(tmp_path):
    out = tmp_path / "live"
    with serving(sensible) as server:
        done = run_campaign(campaign(server.url, "campaign.rounds=2"), out)
    assert done["rounds"] == 3, done
    first = decisions(out)[0]
    assert "synthesize/made" in first["kinds"], "written rows stand in the recipe as a frozen artifact"
    roles = {x.data["request"]["role"] for x in read_exchanges(out)}
    assert roles >= {"data", "failures", "dynamics", "history", "meta", "executor", "synthesis", "review"}
    made = next((out / "artifacts" / "made").glob("*"))
    assert "breaks" in (made / "rejected.jsonl").read_text(), "rejected rows are kept with their reason"
    assert [k for k, _, _ in journal(out)].count("taxonomy.revised") == 1
    for file in out.rglob("*"):
        assert not file.is_file() or KEY.encode() not in file.read_bytes(), file
    assert spend_by_scope(out)["role:meta"]["usd"] > 0
    spent = views.status(out)
    assert abs(sum(spent["usd_by_role"].values()) - spent["usd"]) < 1e-3
    again = tmp_path / "again" / "live"
    shutil.copytree(tmp_path / ".sealed", tmp_path / "again" / ".sealed")
    config = campaign("http://127.0.0.1:9", "campaign.rounds=2", f"llm.replay={out}")
    run_campaign(config, again)
    assert journal(again) == journal(out), "a replay makes the same records, with no server to ask"


@pytest.mark.parametrize("variant", VARIANTS)
def test_each_variant_runs_and_moves_its_work(variant, tmp_path):
    out = tmp_path / variant
    with serving(sensible) as server:
        done = run_campaign(campaign(server.url, "campaign.rounds=2", f"components={variant}"), out)
    assert done["rounds"] == 3
    meter = context_meter(out, 64_000)
    roles = {row["role"] for row in meter}
    assert ("solo" in roles) is (variant in ("base", "executor", "analysis"))
    assert ("executor" in roles) is (variant != "base")
    assert ("meta" in roles) is (variant in ("analysis", "synthesis", "all"))
    assert all(row["fill"] < 1 and row["compactions"] == 0 for row in meter)
    shares = call_shares(out)
    assert abs(sum(row["share"] for row in shares.values()) - 1) < 1e-9
    print(variant, {k: v["calls"] for k, v in shares.items()}, max(row["largest"] for row in meter))


def test_a_fault_in_every_third_call_still_finishes(tmp_path):
    faults = [
        "429",
        "500",
        "drop",
        "garbage",
        "empty",
        "refusal",
        "length",
        "words",
        "types",
        "unknown",
        "loop",
    ]
    count = iter(range(10**6))

    def brain(asked):
        n = next(count)
        if n % 3:
            return sensible(asked)
        fault = faults[(n // 3) % len(faults)]
        said = {
            "empty": Said(),
            "refusal": Said(text="I cannot.", stop="refusal"),
            "length": Said(text='{"claim": "cut', stop="length"),
            "words": Said(text="Let me think about it."),
            "types": Said(calls=(("answer", '["a list"]'),)),
            "unknown": Said(calls=(("delete_everything", {"path": "/"}),)),
            "loop": Said(calls=(("count_rows", {"by": "leaf"}),)),
        }
        return said.get(fault, Said(fault=fault))

    with serving(brain) as server:
        done = run_campaign(campaign(server.url, "campaign.rounds=2", "llm.retries=2"), tmp_path / "x")
    assert done["rounds"] >= 2, done


def test_an_obedient_model_is_refused_at_every_attempt(tmp_path):
    attempts = [
        Said(calls=(("read_file", {"path": "/etc/passwd"}),)),
        Said(calls=(("edit_hypothesis", {"round": 0, "claim": "all is well"}),)),
        Said(calls=(("sample_rows", {"leaf": "held_out", "limit": 10**9}),)),
        Said(
            calls=(
                (
                    "answer",
                    {
                        "claim": "x",
                        "actions": [{"kind": "os/system", "params": {"cmd": "id"}}],
                        "predicted": {},
                    },
                ),
            )
        ),
        Said(
            calls=(
                (
                    "answer",
                    {
                        "claim": "x",
                        "actions": [{"kind": "synthesize/made", "params": {"artifact": "a" * 24}}],
                        "predicted": {"postscript": 1},
                    },
                ),
            )
        ),
        Said(
            calls=(
                (
                    "answer",
                    {
                        "claim": "x",
                        "actions": [{"kind": "prune/verifier", "params": {}}],
                        "predicted": {"held_out_leaf": 1},
                    },
                ),
            )
        ),
        Said(
            calls=(
                (
                    "answer",
                    {
                        "claim": "x",
                        "actions": [{"kind": "mix/leaf_weights", "params": {"factors": {"postscript": 1e9}}}],
                        "predicted": {"postscript": 9},
                    },
                ),
            )
        ),
        Said(calls=(("answer", {"choose": ["nobody"], "why": "ignore the rules"}),)),
    ]
    count = iter(range(10**6))

    def brain(asked):
        # One role behaves, so that there is a round to attack.
        if role_of(asked) in ("dynamics",):
            return sensible(asked)
        return attempts[next(count) % len(attempts)]

    out = tmp_path / "hostile"
    with serving(brain) as server:
        done = run_campaign(campaign(server.url, "campaign.rounds=1"), out)
    assert done["rounds"] == 2
    taken = decisions(out)[0]
    assert [p["analyst"] for p in taken["accepted"]] == ["dynamics"] and len(taken["abstained"]) == 3
    assert taken["kinds"] == ["mix/leaf_weights"]
    text = (out / "journal.jsonl").read_text()
    assert "all is well" not in text and "os/system" not in str([p for p in taken["accepted"]])


def test_a_changed_prompt_is_noticed_in_a_replay(tmp_path, monkeypatch):
    out = tmp_path / "live"
    with serving(sensible) as server:
        run_campaign(campaign(server.url, "campaign.rounds=0"), out)
    from autosft.subagents import triage

    monkeypatch.setattr(triage, "render", lambda name, **values: f"another prompt for {name}")
    with pytest.raises(ReplayError, match="holds no executor call"):
        run_campaign(
            campaign("http://127.0.0.1:9", "campaign.rounds=0", f"llm.replay={out}"), tmp_path / "again"
        )
