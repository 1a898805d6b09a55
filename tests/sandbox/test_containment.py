"""Hostile answers: contained, counted as failures, and nothing of theirs stays."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from autosft.taxonomy import check_requirement
from autosft.taxonomy.sandbox import Call, Limits, Opaque, answer_calls, isolation, run_tests

QUICK = Limits(cpu_s=2, wall_s=2.0, memory_bytes=1 << 30)
ONE = [Call("f", (1,))]
HEAD = 'import math\n\n\ndef f(x):\n    """Return the number after x."""\n'
confined = pytest.mark.skipif("seccomp" not in isolation(), reason="this kernel confines no system calls")


def detail(code: str, limits: Limits = QUICK) -> str:
    """Run a hostile answer; it must not have returned, and why is told."""
    (reply,) = answer_calls(code, ONE, limits)
    assert not reply.ok and reply.detail
    return reply.detail


def test_the_layers_are_known_by_name() -> None:
    assert "limits" in isolation()
    assert set(isolation()) <= {"limits", "network", "files", "seccomp"}


def test_plain_values_come_back_with_their_types() -> None:
    values = [1, 2.5, True, None, "é\ud800", (1, [2]), {3}, frozenset({4}), {(1, 2): {"a"}}, 2**70, 1j, b"x"]
    for value in [*values, float("inf"), float("-inf")]:
        (reply,) = answer_calls("def f(x): return x", [Call("f", (value,))])
        assert reply.ok and reply.value == value and type(reply.value) is type(value)


def test_an_object_that_equals_everything_equals_nothing_here() -> None:
    code = "class A:\n    def __eq__(self, other): return True\ndef f(x): return A()"
    (reply,) = answer_calls(code, ONE)
    assert reply.ok and isinstance(reply.value, Opaque) and reply.value != 4


def test_calls_after_a_failed_one_still_count() -> None:
    code = "def f(x):\n    return 10 // x"
    replies = answer_calls(code, [Call("f", (k,)) for k in (5, 0, 2)])
    assert [r.ok for r in replies] == [True, False, True] and replies[1].detail == "ZeroDivisionError"


@confined
@pytest.mark.parametrize(
    "code",
    [
        "import os\nwhile True: os.fork()",
        "import os\ndef f(x):\n    while True: os.fork()",
        "import multiprocessing\ndef f(x):\n    p = multiprocessing.Process(target=print)\n    p.start()",
        "import subprocess\ndef f(x): return subprocess.check_output(['id'])",
        "import os\ndef f(x): os.execv('/bin/true', ['true'])",
        "import os\ndef f(x): os.kill(os.getppid(), 9)",
        "import os\ndef f(x): os.killpg(0, 9)",
        "import os\ndef f(x): os.kill(1, 0)",
        "import socket\ndef f(x): socket.create_connection(('127.0.0.1', 80), 1)",
        "import ctypes\ndef f(x):\n    if ctypes.CDLL(None).unshare(0x10000000): raise OSError\n",
        "def f(x): open('/proc/1/mem', 'wb')",
    ],
    ids=[
        "fork bomb",
        "fork",
        "process",
        "command",
        "exec",
        "kill parent",
        "kill group",
        "kill 1",
        "socket",
        "unshare",
        "mem",
    ],
)
def test_processes_signals_and_sockets_are_refused(code: str) -> None:
    started = len(psutil.pids())
    assert "Error" in detail(code)
    assert len(psutil.pids()) < started + 50


@confined
def test_nothing_can_be_written_outside(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("kept")
    for action in (
        f"open({str(mine)!r}, 'w')",
        f"open({str(tmp_path / 'new')!r}, 'w')",
        f"__import__('os').remove({str(mine)!r})",
        f"__import__('os').rename({str(mine)!r}, {str(tmp_path / 'gone')!r})",
        f"__import__('shutil').rmtree({str(tmp_path)!r})",
        f"__import__('os').chmod({str(mine)!r}, 0)",
        f"__import__('os').symlink('/', {str(tmp_path / 'link')!r})",
    ):
        assert "Error" in detail(f"def f(x):\n    {action}\n    return 1"), action
    assert mine.read_text() == "kept" and os.listdir(tmp_path) == ["mine"] and os.access(mine, os.R_OK)


def test_folders_are_removed_and_files_are_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = "def f(x):\n    with open('big', 'wb') as s:\n        while True: s.write(bytes(1 << 16))"
    assert detail(code)
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import os\nos._exit(0)", "ended"),
        ("import os\ndef f(x): os._exit(0)", "ended"),
        ("import sys\ndef f(x): sys.exit(0)", "SystemExit"),
        ("def f(x): raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("def f(x): return bytearray(10**12)", "MemoryError"),
        ("def f(x):\n    a = []\n    while True: a.append(bytes(1 << 20))", ""),
        ("def f(x): return f(x)", "RecursionError"),
        ("def f(x):\n    a = []\n    for _ in range(10**4): a = [a]\n    return a", "ValueError"),
        ("import ctypes\ndef f(x): ctypes.string_at(0)", "ended"),
        (
            "import os\ndef f(x): os.closerange(3, 50)",
            "",
        ),
        ("def f(x) return", "SyntaxError"),
        ("x = 1", "KeyError"),
    ],
)
def test_ways_to_end_early_are_failures(code: str, why: str) -> None:
    assert why in detail(code)


@pytest.mark.slow
@pytest.mark.parametrize(
    "code",
    [
        "def f(x):\n    while True: pass",
        "import time\ndef f(x): time.sleep(1000)",
        "import time\nwhile True: time.sleep(0.5)",
        "def f(x):\n    while True: print('x' * 100000)",
        "import sys\ndef f(x):\n    while True: sys.stderr.write('x' * 100000)",
        "import signal\nfor n in set(signal.Signals) - {9, 19}: signal.signal(n, signal.SIG_IGN)\n"
        "def f(x):\n    while True: pass",
        "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,)).start()\ntime.sleep(1000)",
    ],
    ids=["loop", "sleep", "naps", "stdout", "stderr", "signals", "threads"],
)
def test_time_runs_out(code: str) -> None:
    start = time.monotonic()
    detail(code)
    assert time.monotonic() - start < 60


def test_forged_replies_are_no_answers() -> None:
    forge = (
        'import os\nloaded = b\'{{"names": ["f"], "layers": []}}\\n\'\nfor n in range(3, 20):\n'
        "    try: os.write(n, loaded + b'{}\\n' * 9)\n    except OSError: pass\ndef f(x): return 0"
    )
    replies = answer_calls(forge.format('{"value": 1}'), [Call("f", (k,)) for k in range(3)], QUICK)
    # Whatever it writes, it does not know the right answers: there is nothing to be won.
    assert [r.value for r in replies] != [0, 1, 4]
    assert not any(r.ok for r in answer_calls(forge.format("rubbish"), ONE, QUICK)[1:])


def test_tests_run_apart_from_what_they_test() -> None:
    tests = "assert add(1, 2) == 3\nassert add('a', 'b') == 'ab'\nassert add([1], [2]) == [1, 2]"
    assert run_tests("def add(a, b): return a + b", tests).passed
    for cheat in (
        "import os\nos._exit(0)",
        "import builtins\nbuiltins.AssertionError = ValueError\ndef add(a, b): return 0",
        "class Any:\n    def __eq__(self, other): return True\ndef add(a, b): return Any()",
        "import sys\ndef add(a, b):\n    frame = sys._getframe()\n    while frame:\n"
        "        frame.f_globals['add'] = None\n        frame = frame.f_back\n",
        "def add(a, b): return 3",
        "def sub(a, b): return a - b",
    ):
        assert not run_tests(cheat, tests, QUICK).passed, cheat


def test_a_busy_machine_fails_no_answer() -> None:
    code = "def f(x):\n    total = 0\n    for k in range(10_000_000): total += k\n    return total"
    slow = Limits(cpu_s=20, wall_s=0.5)
    # The clock counts idle time only: work that takes far longer than `wall_s` goes on.
    assert answer_calls(code, ONE, slow)[0].ok


@pytest.mark.parametrize(
    "text", ["", "no code", "```python\n```", "```python\nx = (\n```", "(" * 100_000, "\x00"]
)
def test_any_string_gets_a_verdict(text: str) -> None:
    kwargs = {"tests": "assert f(1) == 1", "entry_point": "f"}
    assert check_requirement("code:tests", kwargs, "", text) == (False, False)


def test_code_is_found_in_answers() -> None:
    kwargs = {"tests": "assert f(1) == 2", "entry_point": "f", "head": HEAD}
    good = "def f(x):\n    return x + 1"
    for text in (
        good,
        f"Sure:\n```python\n{good}\n```\nIt adds one.",
        f"```python\nprint('usage')\n```\n\n```py\n{good}\n```",
        f"```\n{good}",
        "    return x + 1\n",
        "```python\ndef f(x):\n    return x + math.floor(1.5)\n```",
    ):
        assert check_requirement("code:tests", kwargs, "", text)[0], text
    assert not check_requirement("code:tests", kwargs, "", "```javascript\nfunction f(x) {}\n```")[0]


def test_the_interpreter_is_this_one() -> None:
    (reply,) = answer_calls("import sys\ndef f(x): return sys.version", ONE)
    assert reply.value == sys.version
