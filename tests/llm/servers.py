"""A local server that speaks both vendors' wire formats; a function decides what the model says."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Said:
    """A scripted reply: text, or tool calls (name, arguments as an object or raw text), or a fault."""

    text: str = ""
    calls: tuple[tuple[str, Any], ...] = ()
    stop: str = "end"  # end, length, refusal
    fault: str = ""  # 429, 500, drop, hang, garbage, no_usage
    usage: tuple[int, int, int] | None = None  # prompt, cached, output


@dataclass
class Asked:
    """A request as the server saw it."""

    vendor: str
    system: str
    texts: list[str]
    tools: list[str]
    model: str
    headers: dict[str, str]
    body: dict[str, Any] = field(repr=False, default_factory=dict)


Brain = Callable[[Asked], Said]


class WireServer:
    """What was asked, and the address to reach it."""

    def __init__(self, brain: Brain) -> None:
        self.asked: list[Asked] = []
        self._brain = brain
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args: Any) -> None:
                pass

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                asked = read(self.path, body, dict(self.headers))
                with outer._lock:
                    outer.asked.append(asked)
                said = outer._brain(asked)
                if said.fault == "drop":
                    self.close_connection = True
                    self.connection.close()
                    return
                if said.fault == "hang":
                    time.sleep(3)
                if said.fault in ("429", "500", "400"):
                    self._send(int(said.fault), {"error": {"message": f"fault {said.fault}", "type": "x"}})
                    return
                if said.fault == "garbage":
                    self._send(200, {"id": "x", "nothing": "of use"})
                    return
                self._send(200, openai(said, body) if asked.vendor == "openai" else anthropic(said, body))

            def _send(self, status: int, data: Any) -> None:
                raw = json.dumps(data).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                with suppress(BrokenPipeError, ConnectionResetError):
                    self.wfile.write(raw)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def serving(brain: Brain) -> Iterator[WireServer]:
    server = WireServer(brain)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def read(path: str, body: dict[str, Any], headers: dict[str, str]) -> Asked:
    if path.endswith("/chat/completions"):
        system = next((m["content"] for m in body["messages"] if m["role"] == "system"), "")
        texts = [m.get("content") or "" for m in body["messages"] if m["role"] != "system"]
        tools = [t["function"]["name"] for t in body.get("tools", ())]
        return Asked("openai", system, texts, tools, body["model"], headers, body)
    system = "".join(block["text"] for block in body["system"])
    texts = [
        "\n".join(str(b.get("text") or b.get("content") or "") for b in m["content"])
        for m in body["messages"]
    ]
    tools = [t["name"] for t in body.get("tools", ())]
    return Asked("anthropic", system, texts, tools, body["model"], headers, body)


def _usage(said: Said, body: dict[str, Any]) -> tuple[int, int, int]:
    return said.usage or (len(json.dumps(body)) // 4, 0, 40)


def openai(said: Said, body: dict[str, Any]) -> dict[str, Any]:
    prompt, cached, output = _usage(said, body)
    message: dict[str, Any] = {"role": "assistant", "content": said.text or None}
    if said.calls:
        message["tool_calls"] = [
            {
                "id": f"x{i}",
                "type": "function",
                "function": {"name": name, "arguments": a if isinstance(a, str) else json.dumps(a)},
            }
            for i, (name, a) in enumerate(said.calls)
        ]
    if said.stop == "refusal":
        message["refusal"] = said.text or "no"
    reason = {"length": "length", "refusal": "stop"}.get(said.stop, "tool_calls" if said.calls else "stop")
    usage = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}
    usage["prompt_tokens_details"] = {"cached_tokens": cached}
    data = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
    }
    return data if said.fault == "no_usage" else {**data, "usage": usage}


def anthropic(said: Said, body: dict[str, Any]) -> dict[str, Any]:
    prompt, cached, output = _usage(said, body)
    content: list[dict[str, Any]] = [{"type": "text", "text": said.text}] if said.text else []
    for i, (name, a) in enumerate(said.calls):
        content.append(
            {"type": "tool_use", "id": f"t{i}", "name": name, "input": a if isinstance(a, dict) else {}}
        )
    reason = {"length": "max_tokens", "refusal": "refusal"}.get(
        said.stop, "tool_use" if said.calls else "end_turn"
    )
    return {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": content,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {
            "input_tokens": prompt - cached,
            "output_tokens": output,
            "cache_read_input_tokens": cached,
        },
    }
