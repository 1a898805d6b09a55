"""The one way to call a model: recorded replies first; else reserve, attempt, settle, record (I8, I9)."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Mapping
from typing import Any, Protocol

from autosft.config import LlmSettings
from autosft.errors import ConfigError, ContextCapError, LanguageModelError, ReplayError, ScopeCapError
from autosft.llm.chat import Reply, Request
from autosft.llm.clients import CallFailed, Client, Clients
from autosft.llm.endpoints import Endpoint, endpoint_for
from autosft.llm.prices import Prices
from autosft.spend import Spend

FIRST_WAIT_S, MOST_WAIT_S = 0.5, 30.0


class Recording(Protocol):
    """Where exchanges are kept, by request fingerprint."""

    def find(self, key: str) -> Mapping[str, Any] | None:
        """Return the outcome of an equal request: `reply` or `error`; None where there is none."""
        ...

    def keep(
        self, key: str, request: Request, outcome: Mapping[str, Any], measured: Mapping[str, Any]
    ) -> None:
        """Store an exchange."""
        ...


class Memory:
    """A recording that lives as long as its process."""

    def __init__(self) -> None:
        self.kept: dict[str, Mapping[str, Any]] = {}

    def find(self, key: str) -> Mapping[str, Any] | None:
        """Return the outcome of an equal request, or None."""
        return self.kept.get(key)

    def keep(
        self, key: str, request: Request, outcome: Mapping[str, Any], measured: Mapping[str, Any]
    ) -> None:
        """Store an exchange."""
        self.kept[key] = outcome


class Caller:
    """Calls models on behalf of roles; thread-safe.

    Args:
        settings: The group `llm`.
        spend: The campaign's ledger.
        prices: What tokens cost.
        recording: Recorded exchanges, consulted before and written after every call.
        client: Sends one attempt; the real SDKs if None.
        offline: Answer from the recording only.
        first_wait_s: Wait before the second attempt; doubled for each further one, with jitter.
    """

    def __init__(
        self,
        settings: LlmSettings,
        spend: Spend,
        prices: Prices,
        recording: Recording,
        *,
        client: Client | None = None,
        offline: bool = False,
        first_wait_s: float = FIRST_WAIT_S,
    ) -> None:
        self._settings, self._spend, self._prices, self._recording = settings, spend, prices, recording
        self._client: Client = client or Clients()
        self._offline, self._first_wait_s = offline, first_wait_s
        self._locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    def endpoint(self, role: str) -> Endpoint:
        """Return the model that plays a role."""
        return endpoint_for(self._settings, role)

    def call(self, request: Request) -> Reply:
        """Return the model's reply; an equal request is never sent twice.

        Raises:
            ContextCapError: The request would not fit into the model's window (I8).
            SpendCapError: The campaign's cap would be exceeded, or the model's price is unknown (I9).
            LanguageModelError: No reply after all attempts, or the cap of the round or role is used up.
            ReplayError: The campaign is replayed and the recording does not hold this request.
        """
        key = request.fingerprint
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            known = self._recording.find(key)
            if known is not None:
                return _outcome(known, request)
            if self._offline:
                raise ReplayError(
                    f"the recording holds no {request.role} call like this one (request {key})",
                    where=f"round {request.round}",
                    hint="prompts, settings or code changed since it was recorded; run it anew",
                )
            self._check_window(request)
            return self._ask(key, request)

    def _check_window(self, request: Request) -> None:
        endpoint = self.endpoint(request.role)
        need = request.likely_input_tokens + request.max_output_tokens
        if need > endpoint.window_tokens:
            raise ContextCapError(
                f"about {need:,} tokens would not fit the window of {endpoint.window_tokens:,}",
                where=f"role {request.role}, round {request.round}",
                hint="raise llm.window_tokens for a model that takes more",
            )

    def _ask(self, key: str, request: Request) -> Reply:
        started, attempts = time.monotonic(), 0
        while True:
            attempts += 1
            try:
                reply, used = self._attempt(key, request)
            except CallFailed as failure:
                if failure.again and attempts <= self._settings.retries:
                    time.sleep(self._wait_s(attempts, failure.after_s))
                    continue
                outcome: dict[str, Any] = {"error": str(failure)}
                measured: dict[str, Any] = {}
            except ScopeCapError as error:
                outcome, measured = {"error": str(error)}, {}
            else:
                outcome, measured = {"reply": reply.to_json()}, used
            measured |= {"attempts": attempts, "wall_s": round(time.monotonic() - started, 3)}
            self._recording.keep(key, request, outcome, measured)
            return _outcome(outcome, request)

    def _attempt(self, key: str, request: Request) -> tuple[Reply, dict[str, Any]]:
        endpoint = self.endpoint(request.role)
        price = self._prices.of(endpoint.model)
        most = request.most_input_tokens
        reserved = {
            "usd": price.most_usd(most, request.max_output_tokens),
            "llm_tokens": float(most + request.max_output_tokens),
        }
        scopes = (f"round:{request.round}", f"role:{request.role}", f"model:{endpoint.model}")
        where = f"role {request.role}, round {request.round}"
        keys = self._spend.reserve_all(f"llm/{key}", reserved, where=where, scopes=scopes)
        try:
            reply = self._client.send(request, endpoint, self._settings.timeout_s)
        except CallFailed as failure:
            if not failure.maybe_billed:
                self._settle(keys, {"usd": 0.0, "llm_tokens": 0.0})
            # Otherwise the reservation stays open and counts in full: the vendor may have done the work.
            raise
        except ConfigError:
            # A missing key: nothing was sent.
            self._settle(keys, {"usd": 0.0, "llm_tokens": 0.0})
            raise
        usage = reply.usage
        spent = reserved if usage is None else {"usd": price.usd(usage), "llm_tokens": float(usage.total)}
        self._settle(keys, spent)
        return reply, {"usd": spent["usd"], "llm_tokens": spent["llm_tokens"], "estimated": usage is None}

    def _settle(self, keys: Mapping[str, str], amounts: Mapping[str, float]) -> None:
        for kind, key in keys.items():
            self._spend.settle(key, amounts[kind])

    def _wait_s(self, attempt: int, after_s: float | None) -> float:
        # Jitter only spreads attempts in time; no result depends on it.
        wait = self._first_wait_s * 2.0 ** (attempt - 1) * random.uniform(0.5, 1.5)
        return min(MOST_WAIT_S, max(wait, after_s or 0.0))


def _outcome(outcome: Mapping[str, Any], request: Request) -> Reply:
    if "reply" in outcome:
        return Reply.from_json(outcome["reply"])
    raise LanguageModelError(str(outcome["error"]), where=f"role {request.role}, round {request.round}")
