"""What a backend starts on a node: runs one attempt of a job and leaves an exit record behind.

`python -m autosft.executor.jobs.shell FOLDER ATTEMPT`. The command dies with this process; a process that
is killed leaves no record, which is how a runner knows that an attempt was lost.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import orjson

from autosft.artifacts import write_atomic
from autosft.executor.jobs.queue import EXIT, LOG, SPEC

_PR_SET_PDEATHSIG = 1


def main(folder: Path, attempt: int) -> int:
    """Run an attempt; return the command's exit code."""
    spec = orjson.loads((folder / SPEC).read_bytes())
    with (folder / LOG).open("ab") as log, (folder / "running.lock").open("ab") as lock:
        # An attempt that was given up may still be at work; its result is as good as a new one's.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _succeeded(folder):
            write_atomic(folder / EXIT, orjson.dumps({"attempt": attempt, "code": 0, "ended": time.time()}))
            return 0
        log.write(f"--- attempt {attempt}, {time.strftime('%Y-%m-%d %H:%M:%S')}\n".encode())
        log.flush()
        try:
            child = subprocess.Popen(
                spec["command"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **spec["environment"]},
                # One thread here, so nothing can hold a lock in the child.
                preexec_fn=_die_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509
            )
        except OSError as error:
            log.write(f"cannot be started: {error}\n".encode())
            code = 127
        else:
            signal.signal(signal.SIGTERM, lambda *_: child.terminate())
            code = child.wait()
        write_atomic(folder / EXIT, orjson.dumps({"attempt": attempt, "code": code, "ended": time.time()}))
    return 0 if code == 0 else 1


def _succeeded(folder: Path) -> bool:
    try:
        return bool(orjson.loads((folder / EXIT).read_bytes())["code"] == 0)
    except (OSError, ValueError, KeyError):
        return False


def _die_with_parent() -> None:
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
