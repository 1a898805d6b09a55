"""The real SDKs against local servers: formats, usage, failures, retries, keys."""

from __future__ import annotations

import contextlib
import dataclasses
import threading

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from autosft.config import load_config
from autosft.errors import ConfigError, ContextCapError, LanguageModelError, ReplayError, SpendCapError
from autosft.llm import Caller, Memory, Part, Reply, Request, ToolCall, ToolSpec, Turn, Usage, load_prices
from autosft.llm.clients import CallFailed
from autosft.spend import Spend
from tests.llm.servers import Said, serving

KEY = "sk-very-secret-0123456789"
VENDORS = ("openai", "anthropic")


def settings(vendor: str, url: str, *more: str):
    base = f"{url}/v1" if vendor == "openai" else url
    return load_config(
        [
            "policy=llm",
            f"llm={vendor}",
            f"llm.base_url={base}",
            "llm.api_key_env=TEST_LLM_KEY",
            "llm.timeout_s=1.5",
            *more,
        ]
    )


def caller(config, folder, **options) -> tuple[Caller, Memory, Spend]:
    memory = Memory()
    spend = Spend(folder, options.pop("caps", {}), scope_caps=options.pop("scope_caps", {}))
    return (
        Caller(config.llm, spend, load_prices(config.spend), memory, first_wait_s=0.01, **options),
        memory,
        spend,
    )


def request(text: str = "hello", role: str = "data", tools: tuple[ToolSpec, ...] = ()) -> Request:
    turns = (
        Turn("user", (Part("evidence", text),)),
        Turn("assistant", (), (ToolCall("call_1", "look", '{"n": 1}'),)),
        Turn("tool", (Part("evidence", "seen"),), (), "call_1"),
    )
    return Request(role, 1, "deciding", {"model": "m"}, "Be brief.", turns, tools, 100)


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("TEST_LLM_KEY", KEY)


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_conversation_with_tools_reaches_the_wire_and_comes_back(vendor, tmp_path):
    said = Said(text="I look.", calls=(("look", {"n": 2}),), usage=(100, 60, 7))
    with serving(lambda asked: said) as server:
        call, _, spend = caller(settings(vendor, server.url), tmp_path)
        reply = call.call(request(tools=(ToolSpec("look", "Looks.", {"type": "object"}),)))
    assert reply.text == "I look." and reply.calls[0].name == "look"
    assert reply.calls[0].arguments.replace(" ", "") == '{"n":2}'
    assert reply.usage == Usage(40, 60, 0, 7), "cached tokens are counted apart, whoever counts them how"
    asked = server.asked[0]
    assert asked.system == "Be brief." and asked.tools == ["look"] and "seen" in asked.texts[-1]
    assert spend.spent["llm_tokens"] == 107 and 0 < spend.spent["usd"] < 0.01
    assert spend.scoped["role:data", "llm_tokens"] == spend.scoped["round:1", "llm_tokens"] == 107


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("fault", ["429", "500", "drop", "garbage", "hang"])
def test_a_fault_is_tried_again_and_an_equal_request_is_never_sent_twice(vendor, fault, tmp_path):
    faults = [fault]

    def brain(asked):
        return Said(fault=faults.pop()) if faults else Said(text="there")

    with serving(brain) as server:
        call, _, spend = caller(settings(vendor, server.url), tmp_path)
        assert call.call(request()).text == "there"
        assert call.call(request()).text == "there"
        assert len(server.asked) == 2
    billed = fault in ("drop", "hang", "garbage")
    assert (spend.spent["llm_tokens"] > 300) is billed, "an attempt that may be billed keeps its reserve"


@pytest.mark.parametrize("vendor", VENDORS)
def test_what_cannot_succeed_is_not_tried_again_and_the_failure_is_recorded(vendor, tmp_path):
    with serving(lambda asked: Said(fault="400")) as server:
        call, memory, spend = caller(settings(vendor, server.url), tmp_path)
        for _ in range(2):
            with pytest.raises(LanguageModelError, match="rejected"):
                call.call(request())
        assert len(server.asked) == 1 and spend.spent["usd"] == 0
    offline = Caller(
        settings(vendor, "http://127.0.0.1:9").llm,
        spend,
        load_prices(load_config().spend),
        memory,
        offline=True,
    )
    with pytest.raises(LanguageModelError, match="rejected"):
        offline.call(request())
    with pytest.raises(ReplayError, match="holds no data call"):
        offline.call(request("another"))


def test_missing_usage_is_charged_to_the_reserve(tmp_path):
    with serving(lambda asked: Said(text="ok", fault="no_usage")) as server:
        call, _, spend = caller(settings("openai", server.url), tmp_path)
        assert call.call(request()).usage is None
    assert spend.spent["llm_tokens"] == request().most_input_tokens + 100


def test_unknown_prices_missing_keys_and_full_windows_are_refused_before_a_call(tmp_path, monkeypatch):
    with serving(lambda asked: Said(text="ok")) as server:
        call, _, _ = caller(settings("openai", server.url, "llm.model=nobody-knows"), tmp_path)
        with pytest.raises(SpendCapError, match="price of model 'nobody-knows' is unknown"):
            call.call(request())
        call, _, _ = caller(settings("openai", server.url, "llm.window_tokens=2000"), tmp_path)
        with pytest.raises(ContextCapError, match="would not fit"):
            call.call(request("x" * 20_000))
        monkeypatch.delenv("TEST_LLM_KEY")
        call, _, _ = caller(settings("openai", server.url), tmp_path)
        with pytest.raises(ConfigError, match="TEST_LLM_KEY is not set"):
            call.call(request())
        assert not server.asked


def test_a_server_that_echoes_the_key_is_not_repeated(tmp_path):
    with serving(lambda asked: Said(text=f"your key is {KEY}", calls=(("a", {"k": KEY}),))) as server:
        call, memory, _ = caller(settings("openai", server.url), tmp_path)
        reply = call.call(request())
    assert KEY not in str(reply) and KEY not in str(memory.kept)


class Slow:
    """Costs what it likes, up to the reserve."""

    def __init__(self, amounts):
        self.amounts = list(amounts)

    def send(self, asked, endpoint, timeout_s):
        n = self.amounts.pop() if self.amounts else 1
        if n % 5 == 0:
            raise CallFailed("timeout", "slow", True, True)
        return Reply("ok", (), "end", Usage(n % 50, 0, 0, n % 100))


@hypothesis_settings(deadline=None, max_examples=15)
@given(st.lists(st.integers(1, 500), min_size=8, max_size=40), st.integers(500, 20_000))
def test_spend_never_exceeds_a_cap_under_four_parallel_analysts(tmp_path_factory, amounts, cap):
    config = settings("openai", "http://127.0.0.1:9")
    config = dataclasses.replace(config, llm=dataclasses.replace(config.llm, retries=1))
    folder = tmp_path_factory.mktemp("spend")
    call, _, spend = caller(
        config,
        folder,
        client=Slow(amounts),
        caps={"llm_tokens": float(cap)},
        scope_caps={"role": {"llm_tokens": cap / 2}},
    )
    most: list[float] = []

    def work(role):
        for i in range(8):
            with contextlib.suppress(SpendCapError, LanguageModelError):
                call.call(request(f"{role} {i}", role=role))
            most.append(spend.spent.get("llm_tokens", 0.0))

    threads = [
        threading.Thread(target=work, args=(role,)) for role in ("data", "failures", "dynamics", "history")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) <= cap
    assert all(
        spent <= cap / 2
        for (scope, kind), spent in spend.scoped.items()
        if scope.startswith("role:") and kind == "llm_tokens"
    )
    assert Spend(folder, {}).spent == pytest.approx(spend.spent)
