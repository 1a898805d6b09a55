"""Put on a campaign's path as `sitecustomize`: kills the process beside chosen writes of records.

A write is known by what it publishes, so the same one is met in every run of an equal campaign. Each target
fires once: the file `fired` remembers it across processes and restarts. The product knows nothing of this.
"""

import json
import os
import signal
from pathlib import Path

ROOT = os.environ.get("CRASH_ROOT", "")
CONTROL = Path(os.environ.get("CRASH_CONTROL", "."))
TARGETS = frozenset(filter(None, os.environ.get("CRASH_TARGETS", "").split("\n")))


def _note(name: str, text: str) -> None:
    handle = os.open(CONTROL / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        _write(handle, text.encode() + b"\n")
    finally:
        os.close(handle)


def _moment(when: str, label: str) -> None:
    point = f"{when} {label}"
    _note("seen", point)
    if point not in TARGETS:
        return
    fired = CONTROL / "fired"
    if not fired.exists() or point not in fired.read_text().splitlines():
        _note("fired", point)
        os.kill(os.getpid(), signal.SIGKILL)


def _around(label, call, *arguments, **named):
    if label is None:
        return call(*arguments, **named)
    _moment("before", label)
    result = call(*arguments, **named)
    _moment("after", label)
    return result


def _published(target) -> str | None:
    path = Path(os.fsdecode(target))
    if not str(path).startswith(ROOT) or "staging" in path.parts or "quarantine" in path.parts:
        return None
    if "artifacts" in path.parts:
        return f"artifact {path.parent.name}/{path.name}"
    return "file cache" if "cache" in path.parts else f"file {path.name}"


def _line(handle: int, content: bytes) -> str | None:
    path = os.readlink(f"/proc/self/fd/{handle}")
    if not path.startswith(ROOT) or not path.endswith(".jsonl"):
        return None
    try:
        line = json.loads(content)
    except ValueError:
        return None
    name = line.get("key", line.get("fingerprint", ""))
    return f"line {Path(path).name} {line.get('kind')}/{name}"


_write, _rename, _replace = os.write, os.rename, os.replace
if ROOT:
    os.write = lambda handle, content: _around(_line(handle, content), _write, handle, content)
    os.rename = lambda old, new: _around(_published(new), _rename, old, new)
    os.replace = lambda old, new: _around(_published(new), _replace, old, new)
