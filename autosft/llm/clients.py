"""One attempt at a call through the vendors' SDKs; every failure is classified, nothing is retried here."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from autosft.llm.chat import Reply, Request, Stop, ToolCall, Usage
from autosft.llm.endpoints import Endpoint


@dataclass(eq=False)
class CallFailed(Exception):
    """An attempt that brought no reply.

    Attributes:
        cause: rate_limit, server_error, timeout, connection, rejected, bad_reply.
        detail: One line, without the key.
        again: Another attempt may succeed.
        maybe_billed: The vendor may have done the work: the attempt is charged to its reserve.
        after_s: What the server asks to wait, if it does.
    """

    cause: str
    detail: str
    again: bool
    maybe_billed: bool
    after_s: float | None = None

    def __str__(self) -> str:
        return f"{self.cause}: {self.detail}"


class Client(Protocol):
    """A vendor's wire format."""

    def send(self, request: Request, endpoint: Endpoint, timeout_s: float) -> Reply:
        """Make one attempt.

        Raises:
            CallFailed: It brought no reply.
        """
        ...


class Clients:
    """The SDK clients of a process, one for each server and key; thread-safe."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, str | None, str], Any] = {}
        self._lock = threading.Lock()

    def send(self, request: Request, endpoint: Endpoint, timeout_s: float) -> Reply:
        """Make one attempt with the endpoint's vendor.

        Raises:
            CallFailed: It brought no reply.
            ConfigError: The key's environment variable is not set.
        """
        key = endpoint.key()
        with self._lock:
            place = (endpoint.vendor, endpoint.base_url, key)
            if place not in self._made:
                self._made[place] = _make(endpoint, key)
            sdk = self._made[place]
        send = _send_openai if endpoint.vendor == "openai" else _send_anthropic
        try:
            return _scrub(send(sdk, request, endpoint, timeout_s), key)
        except CallFailed as error:
            detail = scrub(error.detail, key)
            raise CallFailed(error.cause, detail, error.again, error.maybe_billed, error.after_s) from None


def scrub(text: str, key: str) -> str:
    """Return a text without the key, should a server echo it."""
    return text.replace(key, "[key]") if len(key) >= 8 else text


def _scrub(reply: Reply, key: str) -> Reply:
    calls = tuple(
        ToolCall(_text(c.id), scrub(_text(c.name), key), scrub(_text(c.arguments), key)) for c in reply.calls
    )
    return Reply(scrub(_text(reply.text), key), calls, reply.stop, reply.usage)


def _text(text: str) -> str:
    """Replace lone surrogates, which a JSON escape can smuggle in and no file can hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _make(endpoint: Endpoint, key: str) -> Any:
    # Retries are this project's, in one layer, so that each attempt is reserved and settled.
    if endpoint.vendor == "openai":
        import openai

        return openai.OpenAI(api_key=key, base_url=endpoint.base_url, max_retries=0)
    import anthropic

    return anthropic.Anthropic(api_key=key, base_url=endpoint.base_url, max_retries=0)


# --- OpenAI chat completions (and compatible servers)


def openai_messages(request: Request) -> list[dict[str, Any]]:
    """Return a request's conversation in the chat-completions format."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": request.system}]
    for turn in request.turns:
        if turn.role == "tool":
            messages.append({"role": "tool", "tool_call_id": turn.call_id, "content": turn.text})
            continue
        message: dict[str, Any] = {"role": turn.role, "content": turn.text}
        if turn.calls:
            message["tool_calls"] = [
                {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
                for c in turn.calls
            ]
        messages.append(message)
    return messages


def _send_openai(sdk: Any, request: Request, endpoint: Endpoint, timeout_s: float) -> Reply:
    import openai

    options: dict[str, Any] = {}
    if request.tools:
        options["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": dict(tool.schema),
                },
            }
            for tool in request.tools
        ]
    if endpoint.temperature is not None:
        options["temperature"] = endpoint.temperature
    # Compatible servers know the older name; the vendor's newer models only the new one.
    limit = "max_completion_tokens" if endpoint.base_url is None else "max_tokens"
    options[limit] = request.max_output_tokens
    try:
        raw = sdk.chat.completions.create(
            model=endpoint.model, messages=openai_messages(request), timeout=timeout_s, **options
        )
    except openai.OpenAIError as error:
        raise _failure(error, openai) from None
    except (ValueError, TypeError, AttributeError) as error:
        raise CallFailed("bad_reply", f"unreadable response: {error}"[:300], True, True) from None
    return _read_openai(raw)


def _read_openai(raw: Any) -> Reply:
    try:
        choice = raw.choices[0]
        message, reason = choice.message, choice.finish_reason
        calls = tuple(
            ToolCall(str(c.id), str(c.function.name), str(c.function.arguments or ""))
            for c in message.tool_calls or ()
            if getattr(c, "function", None) is not None
        )
        refusal = getattr(message, "refusal", None)
        text = message.content if isinstance(message.content, str) else ""
    except (AttributeError, IndexError, TypeError) as error:
        raise CallFailed("bad_reply", f"unreadable response: {error}"[:300], True, True) from None
    stops: Mapping[Any, Stop] = {"stop": "end", "length": "length", "content_filter": "refusal"}
    stop: Stop = "tools" if calls else stops.get(reason, "other")
    if refusal or reason == "content_filter":
        stop, text = "refusal", text or str(refusal or "")
    elif reason == "length":
        stop = "length"
    return Reply(text, calls, stop, _openai_usage(getattr(raw, "usage", None)))


def _openai_usage(usage: Any) -> Usage | None:
    prompt, output = getattr(usage, "prompt_tokens", None), getattr(usage, "completion_tokens", None)
    if not isinstance(prompt, int) or not isinstance(output, int) or prompt < 0 or output < 0:
        return None
    # Cached tokens are inside prompt_tokens; some servers send null details.
    details = getattr(usage, "prompt_tokens_details", None)
    cached = getattr(details, "cached_tokens", None) or 0
    cached = min(prompt, cached) if isinstance(cached, int) and cached > 0 else 0
    return Usage(prompt - cached, cached, 0, output)


# --- Anthropic messages


def anthropic_messages(request: Request) -> list[dict[str, Any]]:
    """Return a request's conversation in the messages format: tool results are blocks of a user's turn."""
    messages: list[dict[str, Any]] = []
    for turn in request.turns:
        blocks: list[dict[str, Any]] = []
        if turn.role == "tool":
            blocks.append({"type": "tool_result", "tool_use_id": turn.call_id, "content": turn.text})
        elif turn.text.strip():
            blocks.append({"type": "text", "text": turn.text})
        for call in turn.calls:
            blocks.append(
                {"type": "tool_use", "id": call.id, "name": call.name, "input": _object(call.arguments)}
            )
        role = "assistant" if turn.role == "assistant" else "user"
        blocks = blocks or [{"type": "text", "text": "(nothing)"}]
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += blocks
        else:
            messages.append({"role": role, "content": blocks})
    return messages


def _object(arguments: str) -> dict[str, Any]:
    try:
        found = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return {"unreadable": arguments[:2000]}
    return found if isinstance(found, dict) else {"value": found}


def _send_anthropic(sdk: Any, request: Request, endpoint: Endpoint, timeout_s: float) -> Reply:
    import anthropic

    options: dict[str, Any] = {}
    if request.tools:
        options["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": dict(tool.schema)}
            for tool in request.tools
        ]
    try:
        raw = sdk.messages.create(
            model=endpoint.model,
            max_tokens=request.max_output_tokens,
            # The instructions stay the same for a role: cached by the vendor where they are long enough.
            system=[{"type": "text", "text": request.system, "cache_control": {"type": "ephemeral"}}],
            messages=anthropic_messages(request),
            timeout=timeout_s,
            **options,
        )
    except anthropic.AnthropicError as error:
        raise _failure(error, anthropic) from None
    except (ValueError, TypeError, AttributeError) as error:
        raise CallFailed("bad_reply", f"unreadable response: {error}"[:300], True, True) from None
    return _read_anthropic(raw)


def _read_anthropic(raw: Any) -> Reply:
    texts: list[str] = []
    calls: list[ToolCall] = []
    try:
        if not isinstance(raw.content, list):
            raise TypeError("no content")
        for block in raw.content:
            if block.type == "text":
                texts.append(str(block.text))
            elif block.type == "tool_use":
                calls.append(ToolCall(str(block.id), str(block.name), orjson.dumps(block.input).decode()))
        reason, usage = raw.stop_reason, raw.usage
    except (AttributeError, TypeError) as error:
        raise CallFailed("bad_reply", f"unreadable response: {error}"[:300], True, True) from None
    stops: Mapping[Any, Stop] = {
        "end_turn": "end",
        "stop_sequence": "end",
        "tool_use": "tools",
        "max_tokens": "length",
        "model_context_window_exceeded": "length",
        "refusal": "refusal",
    }
    return Reply("\n".join(texts), tuple(calls), stops.get(reason, "other"), _anthropic_usage(usage))


def _anthropic_usage(usage: Any) -> Usage | None:
    read, output = getattr(usage, "input_tokens", None), getattr(usage, "output_tokens", None)
    if not isinstance(read, int) or not isinstance(output, int) or read < 0 or output < 0:
        return None
    # Cache tokens are outside input_tokens.
    cached = getattr(usage, "cache_read_input_tokens", None) or 0
    written = getattr(usage, "cache_creation_input_tokens", None) or 0
    return Usage(read, int(cached), int(written), output)


# --- failures of either


def _failure(error: Exception, sdk: Any) -> CallFailed:
    detail = f"{type(error).__name__}: {error}".replace("\n", " ")[:300]
    if isinstance(error, sdk.APITimeoutError):
        return CallFailed("timeout", detail, True, True)
    if isinstance(error, sdk.APIConnectionError):
        # Refused before anything was sent costs nothing; lost in between may.
        refused = "ConnectError" in repr(error.__cause__) or "refused" in repr(error.__cause__)
        return CallFailed("connection", f"{detail} {error.__cause__!r}"[:300], True, not refused)
    status = getattr(error, "status_code", None)
    if not isinstance(status, int):
        return CallFailed("bad_reply", detail, True, True)
    if status in (408, 409, 429) or status >= 500:
        cause = "rate_limit" if status == 429 else "server_error"
        return CallFailed(cause, detail, True, False, _after_s(error))
    return CallFailed("rejected", detail, False, False)


def _after_s(error: Any) -> float | None:
    try:
        value = error.response.headers.get("retry-after")
        return None if value is None else max(0.0, float(value))
    except (AttributeError, ValueError):
        return None
