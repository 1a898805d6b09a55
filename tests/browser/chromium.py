"""A real headless Chromium over its debugging pipe: no driver, no socket, nothing to install beside it."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

BINARIES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
TIMEOUT_S = 90.0


def find_chromium() -> str | None:
    """Return the browser to test with: `CHROMIUM`, or the first one on the path."""
    named = os.environ.get("CHROMIUM")
    return named or next((found for name in BINARIES if (found := shutil.which(name))), None)


class Chromium:
    """One browser with one page; commands are those of the DevTools protocol."""

    def __init__(self, binary: str, profile: Path) -> None:
        to_browser, our_end = os.pipe()
        our_ear, from_browser = os.pipe()
        flags = (
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--no-first-run",
            "--hide-scrollbars",
            "--remote-debugging-pipe",
            f"--user-data-dir={profile}",
        )
        # The browser speaks on file descriptors 3 and 4.
        wiring = 'exec 3<&"$0" 4>&"$1"; shift; exec "$@"'
        command = ["bash", "-c", wiring, str(to_browser), str(from_browser), binary, *flags, "about:blank"]
        self._process = subprocess.Popen(
            command, pass_fds=(to_browser, from_browser), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(to_browser)
        os.close(from_browser)
        self._out, self._in, self._buffer = our_end, our_ear, b""
        self._next, self._session = 0, ""
        self.requests: list[str] = []
        self.events: list[str] = []

    def __enter__(self) -> Chromium:
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime"):
            self.send(f"{domain}.enable")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._out)
        os.close(self._in)

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        self._next += 1
        message = {"id": self._next, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._next:
                assert "error" not in answer, (method, answer["error"])
                return dict(answer["result"])

    def open(self, path: Path, *, width: int, dark: bool, height: int = 900) -> None:
        """Show a file in a window of some width, in light or dark colours."""
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.send("Emulation.setDeviceMetricsOverride", **size)
        self.send("Emulation.setEmulatedMedia", features=scheme)
        self.requests.clear()
        self.events.clear()
        self.send("Page.navigate", url=path.absolute().as_uri())
        deadline = time.monotonic() + TIMEOUT_S
        while "Page.loadEventFired" not in self.events:
            assert time.monotonic() < deadline, f"{path} was not loaded"
            self._receive()

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression in the page."""
        done = self.send("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def screenshot(self) -> bytes:
        """Return the whole page as PNG."""
        return base64.b64decode(self.send("Page.captureScreenshot", captureBeyondViewport=True)["data"])

    def pdf(self) -> bytes:
        """Return the page as it is printed."""
        return base64.b64decode(self.send("Page.printToPDF", printBackground=True)["data"])

    def _receive(self) -> dict[str, Any]:
        deadline = time.monotonic() + TIMEOUT_S
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "the browser does not answer"
            chunk = os.read(self._in, 1 << 20)
            assert chunk, "the browser ended"
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        if "method" in message:
            self.events.append(message["method"])
            if message["method"] == "Network.requestWillBeSent":
                self.requests.append(message["params"]["request"]["url"])
        return message
