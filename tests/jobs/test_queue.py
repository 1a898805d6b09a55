"""The durable queue: submitting, order, slots, retries, ends of every kind, runners that are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from autosft.errors import ConfigError, JobError
from autosft.executor.jobs import JobQueue, RunnerSettings, load_backend, runner
from autosft.executor.jobs.queue import CANCELLED, DONE, FAILED, QUEUED, RUNNING
from autosft.executor.jobs.runner import LOST

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.fixture
def queue(tmp_path):
    made = JobQueue(tmp_path / "jobs", RunnerSettings(slots=2, idle_s=1.0))
    yield made
    for record in made.jobs(QUEUED, RUNNING):
        made.cancel(record.id)
    for process in runners(made):
        process.wait(10)


def runners(queue: JobQueue) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            command = process.cmdline()
        except psutil.Error:
            continue
        if "autosft.executor.jobs.runner" in command and str(queue.root) in command:
            found.append(process)
    return found


def holders(queue: JobQueue, name: str) -> list[psutil.Process]:
    """Every process that has a job's folder on its command line: what a lost node takes along."""
    found = []
    for process in psutil.process_iter():
        try:
            if str(queue.root / name) in " ".join(process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return found


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def until(condition, timeout: float = 20.0):
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError("it did not come about")


def shell_of(queue: JobQueue, name: str) -> psutil.Process:
    """The process that holds a job's attempt."""

    def find():
        for process in psutil.process_iter():
            try:
                command = process.cmdline()
            except psutil.Error:
                continue
            if "autosft.executor.jobs.shell" in command and str(queue.root / name) in command:
                return process
        return None

    return until(find)


def test_a_job_runs_and_its_log_can_be_followed(queue):
    began = time.monotonic()
    name = queue.submit("data", python("import os; print('hello', os.environ['MARK'], flush=True)"),
                        environment={"MARK": "7"}, label="greets")  # fmt: skip
    assert time.monotonic() - began < 2, "submitting does not wait"
    done = queue.wait(name, 30)
    assert (done.state, done.cause, done.attempts) == (DONE, "", 1)
    text, offset = queue.read_log(name)
    assert "hello 7" in text and queue.read_log(name, offset) == ("", offset)
    assert queue.get(name[:6]).label == "greets"


def test_failures_are_told_apart(queue):
    bad = queue.submit("x", python("import sys; print('why'); sys.exit(3)"))
    none = queue.submit("x", ["/nowhere/at/all"])
    slow = queue.submit("x", SLEEP, timeout_s=0.5)
    assert queue.wait(bad, 30).cause == "exit code 3" and "why" in queue.read_log(bad)[0]
    assert queue.wait(none, 30).cause == "exit code 127" and "cannot be started" in queue.read_log(none)[0]
    late = queue.wait(slow, 30)
    assert late.state == FAILED and late.cause.startswith("timeout")


def test_priority_and_slots_decide_who_goes_first(tmp_path):
    queue = JobQueue(tmp_path / "jobs", RunnerSettings(slots=1, idle_s=1.0))
    stamp = "import time, pathlib, sys; pathlib.Path(sys.argv[1]).write_text(str(time.time())); "
    stamp += "time.sleep(.3)"
    names = {}
    with queue.runner_lock():  # nothing starts before all are in
        for label, priority, devices in (("late", 0, 1), ("first", 5, 1), ("wide", 1, 4)):
            command = [*python(stamp), str(tmp_path / label)]
            names[label] = queue.submit("x", command, priority=priority, devices=devices)
    queue.ensure_runner()
    assert all(queue.wait(name, 30).state == DONE for name in names.values())
    times = {label: float((tmp_path / label).read_text()) for label in names}
    assert times["first"] < times["wide"] < times["late"]
    assert min(abs(a - b) for a in times.values() for b in times.values() if a != b) > 0.25, "one at a time"


def test_what_is_queued_or_running_is_not_started_twice_and_what_ended_is_run_again(queue, tmp_path):
    count = tmp_path / "count"
    command = python(f"open({str(count)!r}, 'a').write('x'); import time; time.sleep(1)")
    names = {queue.submit("train", command, key=["a", 1]) for _ in range(3)}
    assert len(names) == 1
    name = names.pop()
    until(lambda: queue.get(name).state == RUNNING)
    assert queue.submit("train", command, key=["a", 1]) == name
    queue.wait(name, 30)
    assert count.read_text() == "x"
    assert queue.submit("train", command, key=["a", 1]) == name and queue.wait(name, 30).state == DONE
    assert count.read_text() == "xx"


def test_jobs_are_cancelled_where_they_wait_and_where_they_run(queue):
    running = queue.submit("x", SLEEP, devices=2)
    waiting = queue.submit("x", SLEEP)
    until(lambda: queue.get(running).state == RUNNING and queue.get(running).handle)
    assert queue.cancel(waiting).state == CANCELLED
    process = shell_of(queue, running)
    children = until(process.children)
    queue.cancel(running)
    assert queue.wait(running, 20).state == CANCELLED
    until(lambda: not any(child.is_running() for child in children))
    with pytest.raises(JobError, match="no job"):
        queue.cancel("nothing")


def test_a_job_that_dies_without_a_word_is_started_again_with_the_cause(queue, tmp_path):
    flag = tmp_path / "flag"
    code = f"""
import pathlib, time
if pathlib.Path({str(flag)!r}).exists(): raise SystemExit(0)
pathlib.Path({str(flag)!r}).touch(); time.sleep(60)
"""
    name = queue.submit("x", python(code), retries=1)
    until(flag.exists)
    os.kill(shell_of(queue, name).pid, signal.SIGKILL)
    done = queue.wait(name, 30)
    assert done.state == DONE and done.attempts == 2 and done.cause == LOST, (
        "why it ran twice stays on record"
    )
    assert queue.read_log(name)[0].count("--- attempt") == 2
    never = queue.submit("x", SLEEP, retries=0)
    os.kill(shell_of(queue, never).pid, signal.SIGKILL)
    lost = queue.wait(never, 30)
    assert lost.state == FAILED and lost.cause == LOST


def test_a_killed_runner_is_replaced_and_its_jobs_go_on(queue, tmp_path):
    count = tmp_path / "count"
    code = f"open({str(count)!r}, 'a').write('x'); import time; time.sleep(3)"
    names = [queue.submit("x", python(code)), queue.submit("x", python(code)), queue.submit("x", python("1"))]
    until(lambda: count.exists() and count.read_text() == "xx")
    for process in runners(queue):
        process.kill()
    queue.ensure_runner()
    records = [queue.wait(name, 30) for name in names]
    assert [record.state for record in records] == [DONE] * 3
    assert [record.attempts for record in records] == [1, 1, 1] and count.read_text() == "xx"


def test_a_runner_killed_before_it_noted_whom_it_started_runs_nothing_twice_at_once(queue, tmp_path):
    """The attempt counts as lost; the next one waits for the first and takes its result."""
    count = tmp_path / "count"
    code = f"open({str(count)!r}, 'a').write('x'); import time; time.sleep(3)"
    with queue.runner_lock():
        name = queue.submit("x", python(code))
        queue.mark_started(queue.get(name), (0,))
        load_backend("local", {}).start(queue.root / name, 1, 1, (0,))
        until(count.exists)
    done = queue.wait(name, 30)
    assert done.state == DONE and done.attempts in (1, 2) and count.read_text() == "x"


def test_a_job_submitted_while_the_runner_ends_is_not_left_lying(queue, monkeypatch):
    """Its submitter saw the lock held and started no runner; the one that ends looks once more."""
    names = []

    class Late:
        def __init__(self, *_):
            pass

        def serve(self):
            if not names:  # the last look is behind it
                names.append(queue.submit("x", python("print(1)")))
                return
            record = queue.get(names[0])
            queue.mark_ended(record, DONE, "")

    monkeypatch.setattr(runner, "Runner", Late)
    assert runner.main(queue.root) == 0
    assert queue.get(names[0]).state == DONE
    with queue.runner_lock():
        queue.submit("x", SLEEP)
        assert runner.main(queue.root) == 0, "another serves: this one ends at once"


def test_a_log_is_read_in_whole_characters(queue):
    name = queue.submit("x", python("print('ü' * 10)"))
    queue.wait(name, 30)
    whole, end = queue.read_log(name)
    text, offset = "", 0
    while offset < end:
        part, offset = queue.read_log(name, offset, limit=5)
        text += part
    assert text == whole and "ü" * 10 in whole and "\ufffd" not in text


def test_who_submits_may_end_at_once(tmp_path):
    code = f"""
from pathlib import Path
from autosft.executor.jobs import JobQueue, RunnerSettings
queue = JobQueue(Path({str(tmp_path / "jobs")!r}), RunnerSettings(idle_s=1.0))
queue.submit("x", ["{sys.executable}", "-c", "import time; time.sleep(2); print('after all')"], key=1)
"""
    subprocess.run(python(code), check=True, timeout=30)
    queue = JobQueue(tmp_path / "jobs")
    name = queue.name_of("x", 1)
    assert queue.get(name).state in (QUEUED, RUNNING)
    until(lambda: queue.get(name).state == DONE)
    assert "after all" in queue.read_log(name)[0]
    until(lambda: not runners(queue))


def test_what_cannot_be_served_says_so(tmp_path):
    with pytest.raises(ConfigError, match="no job backend 'moon'"):
        load_backend("moon", {})
    with pytest.raises(ConfigError, match="takes no option 'x'"):
        load_backend("local", {"x": "1"})
    queue = JobQueue(tmp_path / "jobs", RunnerSettings("local", 1, ("x=1",), 1.0))
    record = queue.wait(queue.submit("x", python("1")), 20)
    assert record.state == FAILED and "takes no option" in record.cause
    with pytest.raises(JobError, match="needs a command"):
        queue.submit("x", [], devices=0)
    (tmp_path / "file").write_text("")
    with pytest.raises(JobError, match="cannot be used"):
        JobQueue(Path(tmp_path / "file" / "jobs")).submit("x", python("1"))
