"""Stands in for `python -m vllm.entrypoints.openai.api_server`: its command line, health and completions.

An answer is made of the prompt's own ids and the seed, so that tests can foretell it. `STAND_IN_FAULTS`
(comma-separated, one a start) says what goes wrong: ok, crash, slow, dies, garbage, short, error, busy, hang.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


def fault_of_this_start() -> str:
    place = Path(os.environ["STAND_IN_STATE"])
    number = len(place.read_text().splitlines()) if place.exists() else 0
    with place.open("a") as stream:
        stream.write(f"{os.getpid()}\n")
    faults = os.environ.get("STAND_IN_FAULTS", "ok").split(",")
    return faults[min(number, len(faults) - 1)]


class Handler(BaseHTTPRequestHandler):
    fault = "ok"
    asked = 0

    def log_message(self, *args: Any) -> None:
        pass

    def send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.send(200, b"")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        Handler.asked += 1
        if self.fault == "dies" and Handler.asked > 3:
            os._exit(9)
        if self.fault == "garbage":
            return self.send(200, b"<html>not you</html>")
        if self.fault == "error":
            return self.send(500, b"out of cache")
        if self.fault == "hang":
            time.sleep(60)
        n = body["n"] - (1 if self.fault == "short" else 0)
        choices = [
            {
                "index": k,
                "text": f"{sum(body['prompt'])}/{body['seed']}/{k}",
                "finish_reason": "length" if sum(body["prompt"]) % 5 == 0 else "stop",
                "token_ids": [7, 8, *body["stop_token_ids"]],
            }
            for k in reversed(range(n))
        ]
        self.send(200, json.dumps({"choices": choices, "usage": {"completion_tokens": 3 * n}}).encode())


def main() -> None:
    assert sys.argv[1:3] == ["-m", "vllm.entrypoints.openai.api_server"]
    parser = argparse.ArgumentParser()
    for name in (
        "model",
        "served-model-name",
        "host",
        "port",
        "dtype",
        "max-num-seqs",
        "seed",
        "max-model-len",
    ):
        parser.add_argument(f"--{name}", required=name in ("model", "port"))
    given = parser.parse_args(sys.argv[3:])
    assert (Path(given.model) / "config.json").is_file()
    Handler.fault = fault_of_this_start()
    if Handler.fault == "crash":
        sys.exit("no memory for the cache")
    if Handler.fault == "slow":
        time.sleep(3)
    if Handler.fault == "busy":
        sys.exit("address already in use")
    ThreadingHTTPServer(("127.0.0.1", int(given.port)), Handler).serve_forever()


if __name__ == "__main__":
    main()
