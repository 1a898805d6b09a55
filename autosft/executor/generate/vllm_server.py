"""Generation by a vLLM server over its OpenAI-compatible interface (`generate.backend=vllm`).

One server a checkpoint, started for it, asked with token ids, and stopped; it belongs to the worker's process
group and dies with it. A server that does not come up, or goes away while it is asked, is started again on
another port; what it has answered by then is kept. Its answers are checked: every prompt has its samples.
"""

from __future__ import annotations

import contextlib
import ctypes
import http.client
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import orjson

from autosft.errors import ExecutorError
from autosft.executor.base import check_base
from autosft.executor.generate import Generated, GenerateJob, Report
from autosft.executor.generate.vllm_place import (
    REQUEST_S,
    START_S,
    seconds,
    vllm_environment,
    vllm_python,
)

VERSION = 1
STARTS = 3
_LOST = (OSError, urllib.error.URLError, http.client.HTTPException, TimeoutError)
_TAIL = 600
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


class _Answering(Exception):
    """The server said something that is no answer."""


def generate(job: GenerateJob, report: Report) -> list[Generated]:
    """Answer every prompt, in item order, then by sample.

    Raises:
        ConfigError: There is no vLLM environment.
        BaseModelError: The checkpoint cannot be read.
        ExecutorError: The server did not come up or went away, several times.
    """
    python, context = vllm_python(), check_base(job.checkpoint).context
    answers: dict[int, list[Generated]] = {}
    why = ""
    for attempt in range(1, STARTS + 1):
        try:
            with _server(python, job, context) as port:
                _ask_all(job, port, context, answers, report)
            return [answer for i in range(len(job.prompts.ids)) for answer in answers[i]]
        except _LOST as error:
            why = f"{type(error).__name__}: {error}"
        except _Answering as error:
            why = str(error)
        report({"note": f"vllm, start {attempt} of {STARTS}: {why}"[:300]})
    raise ExecutorError(
        f"the vLLM server failed {STARTS} times, at last: {why}",
        where="generate.backend=vllm",
        hint="see the run's log",
    )


@contextlib.contextmanager
def _server(python: str, job: GenerateJob, context: int) -> Iterator[int]:
    """Start a server, wait until it answers, yield its port, stop it whatever happens."""
    port = _free_port()
    command = [
        python, "-m", "vllm.entrypoints.openai.api_server", "--model", str(job.checkpoint.absolute()),
        "--served-model-name", "checkpoint", "--host", "127.0.0.1", "--port", str(port),
        "--dtype", os.environ.get("AUTOSFT_VLLM_DTYPE", "float32"), "--max-num-seqs", str(job.batch_size),
        "--seed", str(job.seed % 2**31),
    ]  # fmt: skip
    if context:
        command += ["--max-model-len", str(context)]
    if os.environ.get("AUTOSFT_VLLM_ARGS"):
        command += os.environ["AUTOSFT_VLLM_ARGS"].split()
    with tempfile.TemporaryFile() as log:
        # Of the worker's own process group: whoever kills that kills the server too. A worker that is killed
        # alone takes it along through the kernel.
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=dict(vllm_environment()),
            # One system call through a library that is loaded already: safe beside other threads.
            preexec_fn=_die_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509
        )
        try:
            _wait_until_up(process, port, log)
            yield port
        except (*_LOST, _Answering) as error:
            raise _Answering(f"{error}; {_state(process)}: {_tail(log)}") from None
        finally:
            _stop(process)


def _die_with_parent() -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _wait_until_up(process: subprocess.Popen[bytes], port: int, log: Any) -> None:
    limit = seconds(START_S, 600.0)
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if process.poll() is not None:
            raise _Answering("the server ended before it answered")
        address = f"http://127.0.0.1:{port}/health"
        with contextlib.suppress(*_LOST), urllib.request.urlopen(address, timeout=5) as answer:
            if answer.status == 200 and process.poll() is None:
                return
        time.sleep(0.2)
    raise _Answering(f"the server did not answer within {limit:g} s")


def _ask_all(
    job: GenerateJob, port: int, context: int, answers: dict[int, list[Generated]], report: Report
) -> None:
    settings, prompts = job.settings, job.prompts
    room = [context - len(tokens) if context else settings.max_new_tokens for tokens in prompts.tokens]
    for i, space in enumerate(room):
        if space < 1 or not prompts.tokens[i]:
            samples = range(settings.samples_per_item)
            answers[i] = [Generated(prompts.ids[i], k, "", True, 0) for k in samples]
    waiting = [i for i in range(len(prompts.ids)) if i not in answers]
    start = time.perf_counter()
    with ThreadPoolExecutor(max_workers=min(job.batch_size, 64)) as pool:
        asked = pool.map(lambda i: (i, _ask(job, port, i, room[i])), waiting)
        for i, found in asked:
            answers[i] = found
            rate = len(answers) / max(time.perf_counter() - start, 1e-9)
            report({"step": len(answers), "steps": len(prompts.ids), "items_per_s": round(rate, 1)})


def _ask(job: GenerateJob, port: int, i: int, room: int) -> list[Generated]:
    settings, prompts = job.settings, job.prompts
    greedy = settings.temperature <= 0.0
    n = 1 if greedy else settings.samples_per_item
    body = {
        "model": "checkpoint",
        "prompt": prompts.tokens[i],
        "max_tokens": min(settings.max_new_tokens, room),
        "temperature": settings.temperature,
        "n": n,
        # One seed an item: an answer depends neither on its batch nor on what was asked before.
        "seed": (job.seed * 1_000_003 + i) % 2**31,
        "stop_token_ids": [prompts.end_of_turn_id],
        "skip_special_tokens": True,
        "return_token_ids": True,
    }
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/completions",
        data=orjson.dumps(body),
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=seconds(REQUEST_S, 600.0)) as answer:
            data = orjson.loads(answer.read())
    except urllib.error.HTTPError as error:
        raise _Answering(f"status {error.code}: {error.read(300).decode('utf-8', 'replace')}") from None
    except orjson.JSONDecodeError as error:
        raise _Answering(f"no JSON: {error}") from None
    found = _choices(data, n, prompts.ids[i], prompts.end_of_turn_id)
    if greedy:
        found = [Generated(a.item, k, a.text, a.truncated, a.tokens)
                 for a in found for k in range(settings.samples_per_item)]  # fmt: skip
    return found


def _choices(data: Any, n: int, item: str, stop_id: int) -> list[Generated]:
    try:
        choices = sorted(data["choices"], key=lambda choice: int(choice["index"]))
        if [int(choice["index"]) for choice in choices] != list(range(n)):
            raise ValueError(f"{len(choices)} choices, {n} were asked for")
        found = []
        for k, choice in enumerate(choices):
            text, reason = choice["text"], choice["finish_reason"]
            if not isinstance(text, str) or reason not in ("stop", "length"):
                raise ValueError(f"a choice ended by {reason!r}")
            ids = choice.get("token_ids")
            if ids is None:
                tokens = int(data["usage"]["completion_tokens"]) // n
            else:
                tokens = len(ids) - (1 if ids and int(ids[-1]) == stop_id else 0)
            found.append(Generated(item, k, text, reason == "length", tokens))
        return found
    except (KeyError, TypeError, ValueError) as error:
        raise _Answering(f"no completion: {type(error).__name__}: {error}") from None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the server and the engine processes it started."""
    import psutil

    children: list[Any] = []
    with contextlib.suppress(psutil.Error):
        children = psutil.Process(process.pid).children(recursive=True)
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
    if process.poll() is None:
        process.kill()
        process.wait()
    for child in children:
        with contextlib.suppress(psutil.Error):
            child.kill()


def _state(process: subprocess.Popen[bytes]) -> str:
    code = process.poll()
    return "it runs" if code is None else f"it ended with status {code}"


def _tail(log: Any) -> str:
    log.seek(0, os.SEEK_END)
    log.seek(max(0, log.tell() - _TAIL))
    return " ".join(log.read().decode("utf-8", "replace").split()) or "its log is empty"
