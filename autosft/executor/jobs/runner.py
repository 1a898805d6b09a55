"""The one process that serves a queue: starts jobs by priority into free slots, books how they end.

`python -m autosft.executor.jobs.runner ROOT`. It may be killed at any moment: jobs go on, and the next
runner takes them over by their handles. It ends by itself when there is nothing to do.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import orjson

from autosft.errors import AutosftError
from autosft.executor.jobs.backend import Backend, load_backend
from autosft.executor.jobs.queue import (
    CANCELLED,
    DONE,
    EXIT,
    FAILED,
    LOG,
    QUEUED,
    RUNNING,
    JobQueue,
    JobRecord,
)

POLL_S = 0.1
#: An exit record on a shared file system may come a little after its process has gone.
GRACE_S = 2.0
LOST, TIMEOUT = "lost: its process or node died", "timeout"


class Runner:
    """Serves a queue.

    Args:
        queue: The queue.
        backend: Starts attempts.
    """

    def __init__(self, queue: JobQueue, backend: Backend) -> None:
        self._queue, self._backend = queue, backend
        self._slots = queue.settings.slots
        self._missed: dict[str, float] = {}

    def serve(self) -> None:
        """Work until nothing was queued or running for `idle_s`."""
        idle_since = time.monotonic()
        while time.monotonic() - idle_since < self._queue.settings.idle_s:
            if self.step():
                idle_since = time.monotonic()
            time.sleep(POLL_S)

    def step(self) -> bool:
        """Book what ended and start what fits; return whether anything waits or runs."""
        active = self._queue.jobs(QUEUED, RUNNING)
        for record in active:
            if record.state == RUNNING:
                self._look(record)
        running = self._queue.jobs(RUNNING)
        taken = {slot for record in running for slot in record.held}
        waiting = sorted(self._queue.jobs(QUEUED), key=lambda record: (-record.priority, record.number))
        for record in waiting:
            free = [slot for slot in range(self._slots) if slot not in taken]
            # One that needs more than there are gets all of them, alone.
            need = min(record.devices, self._slots)
            if len(free) < need:
                break
            held = tuple(free[:need])
            self._start(record, held)
            taken.update(held)
        return bool(active)

    def _start(self, record: JobRecord, held: tuple[int, ...]) -> None:
        folder, attempt = self._queue.root / record.id, record.attempts + 1
        # Booked first: a runner killed in between leaves an attempt without a handle, which counts as lost;
        # should its process live all the same, the next attempt waits for it (see `shell`).
        self._queue.mark_started(record, held)
        try:
            handle = self._backend.start(folder, attempt, record.devices, held)
        except AutosftError as error:
            with (folder / LOG).open("ab") as log:
                log.write(f"--- not started: {error}\n".encode())
            self._queue.mark_ended(record, FAILED, f"not started: {error.what}")
            return
        self._queue.mark_handle(record, handle)

    def _look(self, record: JobRecord) -> None:
        if record.cancel:
            self._stop(record)
            self._queue.mark_ended(record, CANCELLED, "cancelled")
            return
        ended = self._exit(record)
        if ended is None and self._overran(record):
            self._stop(record)
            self._queue.mark_ended(record, FAILED, f"{TIMEOUT}: longer than {record.timeout_s:g} s")
            return
        if ended is not None:
            self._missed.pop(record.id, None)
            self._stop(record)
            # One that succeeded after it was lost keeps why it was started again.
            text = record.cause if ended == 0 else f"exit code {ended}"
            self._queue.mark_ended(record, DONE if ended == 0 else FAILED, text)
        elif record.handle and self._backend.alive(record.handle):
            self._missed.pop(record.id, None)
        elif time.monotonic() - self._missed.setdefault(record.id, time.monotonic()) > GRACE_S:
            del self._missed[record.id]
            self._stop(record)
            again = record.attempts <= record.retries
            self._queue.mark_ended(record, QUEUED if again else FAILED, LOST)

    def _overran(self, record: JobRecord) -> bool:
        if record.timeout_s is None or record.started is None:
            return False
        return time.time() - record.started > record.timeout_s

    def _stop(self, record: JobRecord) -> None:
        """End an attempt, or free what an ended one still holds."""
        if record.handle:
            self._backend.stop(record.handle)

    def _exit(self, record: JobRecord) -> int | None:
        try:
            data = orjson.loads((self._queue.root / record.id / EXIT).read_bytes())
        except (OSError, ValueError):
            return None
        return int(data["code"]) if data["attempt"] == record.attempts else None


def main(root: Path) -> int:
    """Serve a queue unless another runner does."""
    queue = JobQueue(root)
    code = _serve(queue)
    # Who submitted between this runner's last look and its end saw a runner and started none.
    while code == 0 and queue.jobs(QUEUED, RUNNING):
        code = _serve(queue)
    return code or 0


def _serve(queue: JobQueue) -> int | None:
    """Serve until idle; None where another runner does."""
    with queue.runner_lock() as held:
        if not held:
            return None
        settings = queue.settings
        options = dict(option.partition("=")[::2] for option in settings.options)
        try:
            runner = Runner(queue, load_backend(settings.backend, options))
        except AutosftError as error:
            for record in queue.jobs(QUEUED):
                queue.mark_ended(record, FAILED, f"not started: {error.what}")
            sys.stderr.write(f"{error}\n")
            return 1
        runner.serve()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
