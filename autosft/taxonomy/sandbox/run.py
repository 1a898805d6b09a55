"""The trusted side of the sandbox: starts confined processes, feeds them, ends them."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from autosft.taxonomy.sandbox.values import decode, encode

HERE = Path(__file__).parent
LAYERS = ("limits", "network", "files", "seccomp")
_RECURSION = 2_000
MAX_WALLS = 20
#: Share of a core that counts as work.
_WORKING_FRAC = 0.02
# One allocation arena: each thread's own would reserve address space that counts as memory.
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "MALLOC_ARENA_MAX": "1", "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may use.

    Attributes:
        cpu_s: Processor time. The measure of a slow answer: a busy machine does not change it.
        wall_s: Elapsed time without work, for answers that wait. One that is slow because the machine is busy
            or throttled goes on, up to `MAX_WALLS` times as long.
        memory_bytes: Address space of the process.
        file_bytes: Largest file it may write.
        reply_bytes: Most bytes of its replies.
    """

    cpu_s: int = 10
    wall_s: float = 15.0
    memory_bytes: int = 4 << 30
    file_bytes: int = 1 << 20
    reply_bytes: int = 64 << 20


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function of the answer, by name, with positional arguments."""

    name: str
    args: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """What a call came to.

    Attributes:
        ok: It returned.
        value: What it returned; plain values, `Opaque` for the rest; None where it did not return.
        detail: Why it did not.
    """

    ok: bool
    value: Any = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class TestRun:
    """Whether tests passed, and if not, why."""

    __test__ = False  # not a test of pytest's

    passed: bool
    detail: str = ""


def answer_calls(code: str, calls: Sequence[Call], limits: Limits | None = None) -> list[Reply]:
    """Load code and call its functions, one call after another in one process.

    Args:
        code: Python source, of any origin.
        calls: What to call.
        limits: What the run may use.

    Returns:
        One reply a call, in order. Where the code cannot be loaded, runs out of a limit or ends the process,
        the rest of the calls are not ok.
    """
    limits = limits or Limits()
    lines = [json.dumps({"name": c.name, "args": [encode(part) for part in c.args]}) for c in calls]
    payload = "".join(line + "\n" for line in [json.dumps(_job(limits, code=code)), *lines])
    with _folder() as folder, _process("answerer.py", folder) as process:
        raw, cause = _converse(process, payload.encode("utf-8", "surrogatepass"), limits)
    return _replies(raw, len(calls), cause)


def run_tests(code: str, tests: str, limits: Limits | None = None) -> TestRun:
    """Run tests on code; the two run in processes of their own, so code cannot reach into its tests.

    Args:
        code: Python source, of any origin.
        tests: Python source that raises where a test fails. Names that the code defines stand for calls to
            it; what passes between the two is plain data.
        limits: What each of the two may use.
    """
    limits = limits or Limits()
    to_answer, from_answer = os.pipe(), os.pipe()
    with _folder() as folder, _folder() as other:
        try:
            with (
                _process("answerer.py", folder, stdin=to_answer[0], stdout=from_answer[1]) as answerer,
                _process("tester.py", other, links=(to_answer[1], from_answer[0])) as tester,
            ):
                first = json.dumps(_job(limits, code=code)).encode("utf-8", "surrogatepass") + b"\n"
                _write_all(to_answer[1], first, limits.wall_s)
                for end in (*to_answer, *from_answer):
                    os.close(end)
                to_answer = from_answer = ()  # type: ignore[assignment]
                job = json.dumps(_job(limits, tests=tests)) + "\n"
                raw, cause = _converse(tester, job.encode("utf-8", "surrogatepass"), limits, answerer.pid)
        finally:
            for end in (*to_answer, *from_answer):
                os.close(end)
    try:
        verdict = json.loads(raw.splitlines()[0])
        return TestRun(bool(verdict["passed"]), str(verdict["detail"]))
    except (IndexError, ValueError, KeyError, TypeError):
        return TestRun(False, cause or "the process ended before a verdict")


@functools.cache
def isolation() -> tuple[str, ...]:
    """Return the names of the layers that hold on this machine, of limits, network, files, seccomp.

    network: no network; files: read-only but for a temporary folder; seccomp: no new processes, sockets or
    signals, and without `files` no writing at all; limits: processor time, memory, file size.
    """
    with _folder() as folder, _process("answerer.py", folder) as process:
        raw, _ = _converse(process, json.dumps(_job(Limits(), code="")).encode() + b"\n", Limits())
    try:
        found = json.loads(raw.splitlines()[0])["layers"]
    except (IndexError, ValueError, KeyError):
        return ()
    return tuple(name for name in LAYERS if name in found)


def _job(limits: Limits, **source: str) -> dict[str, Any]:
    return {
        **source,
        "cpu_s": limits.cpu_s,
        "memory_bytes": limits.memory_bytes,
        "file_bytes": limits.file_bytes,
        "recursion": _RECURSION,
    }


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="autosft-sandbox-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _process(
    script: str,
    folder: Path,
    *,
    stdin: int = subprocess.PIPE,
    stdout: int = subprocess.PIPE,
    links: tuple[int, int] | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a confined process in a group of its own; its whole group is killed in the end."""
    command = [sys.executable, "-I", "-X", "utf8", "-B", str(HERE / script), *map(str, links or ())]
    process = subprocess.Popen(
        command,
        stdin=stdin,
        stdout=stdout,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env=_ENVIRONMENT,
        start_new_session=True,
        pass_fds=links or (),
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


def _converse(
    process: subprocess.Popen[bytes], payload: bytes, limits: Limits, *helpers: int
) -> tuple[bytes, str]:
    """Write all input while reading output, until the output ends or a limit is reached.

    Args:
        process: The process.
        payload: Its input.
        limits: The limits.
        helpers: Ids of processes it may be waiting for.

    Returns:
        (output, '' or the limit that ended the run).
    """
    assert process.stdin is not None and process.stdout is not None
    clock = _IdleClock((process.pid, *helpers), limits.wall_s)
    view, size = memoryview(payload), 0
    received: list[bytes] = []
    os.set_blocking(process.stdin.fileno(), False)
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        selector.register(process.stdin, selectors.EVENT_WRITE)
        while True:
            left = clock.left()
            if left <= 0:
                return b"".join(received), f"longer than {limits.wall_s:g} s"
            for key, _ in selector.select(left):
                if key.fileobj is process.stdin:
                    view = _feed(process, selector, view)
                    continue
                part = os.read(process.stdout.fileno(), 1 << 16)
                if not part:
                    return b"".join(received), ""
                received.append(part)
                size += len(part)
                if size > limits.reply_bytes:
                    return b"".join(received), f"more than {limits.reply_bytes} bytes of replies"


class _IdleClock:
    """Runs out when processes do no work for a while, or after `MAX_WALLS` times that while."""

    def __init__(self, pids: Sequence[int], wall_s: float) -> None:
        self._pids, self._wall_s = pids, wall_s
        self._end = time.monotonic() + MAX_WALLS * wall_s
        self._deadline, self._worked = time.monotonic() + wall_s, self._cpu_s()

    def left(self) -> float:
        """Return the seconds until the next look; 0 or less when time is up."""
        now = time.monotonic()
        if now >= self._deadline and now < self._end:
            worked = self._cpu_s()
            if worked - self._worked >= _WORKING_FRAC * self._wall_s:
                self._deadline, self._worked = now + self._wall_s, worked
        return min(self._deadline, self._end) - now

    def _cpu_s(self) -> float:
        total = 0.0
        for pid in self._pids:
            with contextlib.suppress(psutil.Error):
                times = psutil.Process(pid).cpu_times()
                total += times.user + times.system
        return total


def _feed(process: subprocess.Popen[bytes], selector: selectors.BaseSelector, view: memoryview) -> memoryview:
    assert process.stdin is not None
    try:
        view = view[os.write(process.stdin.fileno(), view[: 1 << 16]) :]
    except BlockingIOError:
        return view
    except OSError:
        view = view[:0]  # it does not read any more; its output says what happened
    if not view:
        selector.unregister(process.stdin)
        with contextlib.suppress(OSError):
            process.stdin.close()
    return view


def _write_all(descriptor: int, data: bytes, wall_s: float) -> None:
    """Write to a pipe whose reader may never read."""
    os.set_blocking(descriptor, False)
    deadline, view = time.monotonic() + wall_s, memoryview(data)
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_WRITE)
        while view and (left := deadline - time.monotonic()) > 0:
            if selector.select(left):
                try:
                    view = view[os.write(descriptor, view[: 1 << 16]) :]
                except BlockingIOError:
                    continue
                except OSError:
                    break
    os.set_blocking(descriptor, True)


def _replies(raw: bytes, n_calls: int, cause: str) -> list[Reply]:
    lines = raw.split(b"\n")
    # What follows the last line end was cut off.
    lines = lines[:-1]
    ended = Reply(False, detail=cause or "the process ended")
    found: list[Reply] = []
    try:
        loaded = json.loads(lines[0])
        if "error" in loaded:
            return [Reply(False, detail=str(loaded["error"]))] * n_calls
        for line in lines[1 : n_calls + 1]:
            found.append(_reply(json.loads(line)))
    except (IndexError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        # The code wrote over the protocol: nothing after this point is an answer.
        pass
    return found + [ended] * (n_calls - len(found))


def _reply(data: Any) -> Reply:
    if "error" in data:
        return Reply(False, detail=str(data["error"]))
    return Reply(True, decode(data["value"]))
