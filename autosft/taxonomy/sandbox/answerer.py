"""The confined side that runs an answer's code: `python -I answerer.py`, never imported.

Standard input carries JSON lines: first the job, then calls; standard output carries one JSON line for the
job and one a call. The code sees neither: its standard streams are /dev/null, and nothing that a correct
answer is compared with ever enters this process.
"""

from __future__ import annotations

import builtins
import json
import os
import random
import sys
from typing import Any, BinaryIO


def main() -> None:
    """Confine this process, load the code, answer calls until the input ends."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from confine import confine  # type: ignore[import-not-found]
    from values import decode, encode  # type: ignore[import-not-found]

    sys.path.pop(0)
    source, target = _take_streams()
    job = json.loads(source.readline())
    layers = confine(job["cpu_s"], job["memory_bytes"], job["file_bytes"])
    space: dict[str, Any] = {"__name__": "__answer__", "__builtins__": builtins}
    sys.setrecursionlimit(job["recursion"])
    random.seed(0)
    try:
        exec(compile(job["code"], "<answer>", "exec"), space)  # the whole point of this process
        loaded: dict[str, Any] = {"layers": layers, "names": [n for n in space if isinstance(n, str)]}
    except BaseException as error:
        loaded = {"layers": layers, "error": f"{type(error).__name__}: {error}"[:300]}
    _send(target, loaded)
    for line in source:
        call = json.loads(line)
        try:
            function = space[call["name"]]
            value = function(*[decode(part) for part in call["args"]])
            _send(target, {"value": encode(value)})
        except BaseException as error:
            _send(target, {"error": f"{type(error).__name__}"[:80]})


def _take_streams() -> tuple[BinaryIO, BinaryIO]:
    """Move the protocol away from descriptors 0 and 1, which code may read, flood or close."""
    source, target = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    return source, target


def _send(target: BinaryIO, message: dict[str, Any]) -> None:
    target.write(json.dumps(message).encode() + b"\n")
    target.flush()


if __name__ == "__main__":
    main()
    # Exit handlers and threads that the code left behind have no say.
    os._exit(0)
