"""The live page over HTTP: every page, who may look and act, foreign text, and bad addresses."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from autosft.errors import CampaignError
from autosft.pool import Pool, new_row, read_pool, write_pool
from autosft.serve import create_app
from autosft.serve.content import stamp
from autosft.serve.folders import campaigns
from autosft.serve.rows import rows_page
from autosft.serve.security import Gate
from tests.campaigns import command, run_cli

pytestmark = pytest.mark.slow
PAGES = (
    "",
    "round/0",
    "round/1",
    "leaves",
    "rows",
    "rows?round=1&origin=edit",
    "transcripts",
    "runs",
    "report",
)
EVIL = '<script>alert(1)</script>\x1b[31m"><img src=x onerror=alert(2)>{{ 7 * 7 }}'


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("serve") / "tiny"
    done = run_cli(*command(out, "campaign.rounds=1")[3:])
    assert done.returncode == 0, done.stderr
    return out


def client(root: Path, gate: Gate | None = None, **headers: str) -> Any:
    from fastapi.testclient import TestClient

    gate = gate or Gate(frozenset({"localhost"}), None)
    return TestClient(
        create_app(root, gate), base_url="http://localhost", headers=headers, follow_redirects=False
    )


@pytest.mark.parametrize("page", PAGES)
def test_every_page_is_there_and_asks_nobody_else(finished: Path, page: str) -> None:
    answer = client(finished).get(f"/c/tiny/{page}")
    assert answer.status_code == 200, answer.text[:500]
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert not re.search(r"(?:src|href)=[\"']?(?:https?:)?//", answer.text)
    assert answer.text.count("<h1>") == 1 and 'lang="en"' in answer.text


def test_figures_are_those_of_the_views(finished: Path) -> None:
    rounds = json.loads(run_cli("rounds", str(finished), "--json").stdout)
    text = client(finished).get("/c/tiny/").text
    from autosft.report.text import score

    assert all(score(r["score"]) in text for r in rounds)
    found = rows_page(finished, number=1)
    assert found["total"] == len(read_pool(_build(finished))[0])


def _build(out: Path) -> Path:
    rounds = json.loads(run_cli("rounds", str(out), "--json").stdout)
    return out / "artifacts" / "build" / rounds[1]["build_fingerprint"] / "rows.parquet"


def test_rows_are_filtered_searched_and_paged(finished: Path) -> None:
    whole = rows_page(finished)
    one = rows_page(finished, source=whole["sources"][0])
    assert 0 < one["total"] < whole["total"] and {r["source"] for r in one["rows"]} == {whole["sources"][0]}
    word = whole["rows"][0]["messages"][0]["content"].split()[0]
    hits = rows_page(finished, search=word.upper())
    assert hits["total"] >= 1
    assert all(word.lower() in "\n".join(m["content"] for m in r["messages"]).lower() for r in hits["rows"])
    assert rows_page(finished, search="no row says this (")["total"] == 0
    first, second = rows_page(finished, page=1), rows_page(finished, page=2)
    assert not {r["id"] for r in first["rows"]} & {r["id"] for r in second["rows"]}
    assert rows_page(finished, page=10**6)["rows"] == []
    with pytest.raises(CampaignError, match="round 77"):
        rows_page(finished, number=77)


def test_a_changed_row_is_shown_with_what_it_was(finished: Path) -> None:
    made = (
        rows_page(finished, number=1, origin="replace")["rows"]
        or rows_page(finished, number=1, origin="edit")["rows"]
    )
    assert made, "the round changes rows"
    text = client(finished).get(f"/c/tiny/row/{made[0]['id']}?round=1").text
    assert made[0]["parent"] in text and text.count("<article") >= 2


@pytest.mark.parametrize(
    "path",
    [
        "/c/nope/",
        "/c/tiny/round/99",
        "/c/tiny/row/zzz",
        "/c/tiny/log/..%2Fcampaign.json",
        "/c/tiny/log/x.log",
        "/c/tiny/transcripts/0",
        "/c/tiny/rows?round=99",
        "/c/..%2F..%2Fetc/",
        "/static/..%2Fapp.py",
        "/static/secret",
    ],
)
def test_bad_addresses_get_a_page_and_no_trace(finished: Path, path: str) -> None:
    answer = client(finished).get(path)
    assert answer.status_code == 404 and "Traceback" not in answer.text


def test_another_name_is_refused_and_a_token_is_needed_off_loopback(finished: Path) -> None:
    assert client(finished, host="evil.example").get("/c/tiny/").status_code == 421
    gate = Gate(frozenset({"localhost"}), "secret-token")
    outside = client(finished, gate)
    assert outside.get("/c/tiny/").status_code == 401
    assert outside.get("/c/tiny/?token=wrong").status_code == 401
    entered = outside.get("/c/tiny/?token=secret-token")
    assert entered.status_code == 303 and "secret-token" not in entered.headers["location"]
    assert (
        "httponly" in entered.headers["set-cookie"].lower()
        and "samesite=strict" in entered.headers["set-cookie"].lower()
    )
    assert outside.get("/c/tiny/").status_code == 200


def test_acts_need_the_pages_token_and_go_through_the_library(finished: Path, tmp_path: Path) -> None:
    copy = tmp_path / "tiny"
    shutil.copytree(finished, copy)
    gate = Gate(frozenset({"localhost"}), None)
    web = client(copy, gate)
    form = {"reason": "looked wrong", "number": "1"}
    assert web.post("/c/tiny/act/invalidate", data=form).status_code == 403
    assert web.post("/c/tiny/act/invalidate", data={**form, "token": "guess"}).status_code == 403
    assert web.post("/c/tiny/act/destroy", data={**form, "token": gate.act_token}).status_code == 404
    none = web.post("/c/tiny/act/approve", data={"token": gate.act_token})
    assert none.status_code == 409 and "no decision waits" in none.text
    assert web.post("/c/tiny/act/invalidate", data={**form, "token": gate.act_token}).status_code == 303
    assert "does not count" in web.get("/c/tiny/").text
    zero = web.post("/c/tiny/act/invalidate", data={**form, "number": "0", "token": gate.act_token})
    assert zero.status_code == 409 and "cannot be invalidated" in zero.text
    closed = Gate(frozenset({"localhost"}), None, acts=False)
    looking = client(copy, closed)
    assert looking.post("/c/tiny/act/pause", data={"token": closed.act_token}).status_code == 403
    assert "Invalidate" not in looking.get("/c/tiny/round/1").text


def test_foreign_text_is_inert(finished: Path, tmp_path: Path) -> None:
    copy = tmp_path / "tiny"
    shutil.copytree(finished, copy)
    facts = json.loads((copy / "campaign.json").read_text())
    pools = list((copy / "artifacts" / "pool").iterdir())
    assert len(pools) == 1 and facts
    write_pool(
        Pool.from_rows([new_row(EVIL[:60], [("user", EVIL), ("assistant", EVIL * 500)])]),
        pools[0] / "pool.parquet",
    )
    text = client(copy).get("/c/tiny/rows").text
    assert "<script>alert" not in text and "<img" not in text and "\x1b" not in text and "{{ 7" in text
    assert "characters more" in text


def test_a_folder_of_campaigns_and_of_nothing(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "a b")
    shutil.copytree(finished, tmp_path / "deep" / "x")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "campaign.json").write_text("{")
    found = campaigns(tmp_path)
    assert set(found) == {"a_b", "deep-x", "broken"}
    text = client(tmp_path).get("/").text
    assert "/c/deep-x/" in text and "broken" in text
    with pytest.raises(CampaignError, match="no campaign here"):
        create_app(tmp_path / "deep" / "x" / "logs", Gate(frozenset(), None))


def test_the_stamp_changes_with_the_journal(finished: Path, tmp_path: Path) -> None:
    copy = tmp_path / "tiny"
    shutil.copytree(finished, copy)
    before = stamp(copy)
    assert stamp(copy) == before
    with (copy / "journal.jsonl").open("a") as stream:
        stream.write("\n")
    assert stamp(copy) != before


def test_a_taken_port_and_an_empty_folder_are_named(tmp_path: Path) -> None:
    shown = run_cli("serve", str(tmp_path), "--port", "0")
    assert shown.returncode == 2 and "no campaign here" in shown.stderr


@pytest.fixture
def taken_port() -> Iterator[int]:
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_taken_port_is_named(finished: Path, taken_port: int) -> None:
    shown = run_cli("serve", str(finished), "--port", str(taken_port))
    assert shown.returncode == 2 and "choose another --port" in shown.stderr
