"""The confined side that runs tests: `python -I tester.py`, never imported.

The answer lives in another process; here, the names it defines stand for calls to it. Descriptors: standard
input carries the job, standard output one verdict line; the two arguments are the numbers of descriptors that
lead to and from the answerer.
"""

from __future__ import annotations

import ast
import builtins
import json
import os
import sys
from typing import Any, BinaryIO


class Remote:
    """A function of the answer."""

    def __init__(self, name: str, calls: BinaryIO, replies: BinaryIO, codec: Any) -> None:
        self._name, self._calls, self._replies, self._codec = name, calls, replies, codec

    def __call__(self, *args: Any) -> Any:
        """Call it with plain values; raise where it raised."""
        line = json.dumps({"name": self._name, "args": [self._codec.encode(part) for part in args]})
        self._calls.write(line.encode() + b"\n")
        self._calls.flush()
        reply = json.loads(self._replies.readline() or b'{"error": "it ended"}')
        if "error" in reply:
            raise RuntimeError(f"the answer raised {reply['error']}")
        return self._codec.decode(reply["value"])


def main() -> None:
    """Confine this process, run the tests, say what came out."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import values as codec  # type: ignore[import-not-found]
    from confine import confine  # type: ignore[import-not-found]

    sys.path.pop(0)
    job = json.loads(sys.stdin.buffer.readline())
    verdict = os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    calls, replies = os.fdopen(int(sys.argv[1]), "wb"), os.fdopen(int(sys.argv[2]), "rb")
    loaded = json.loads(replies.readline() or b'{"error": "it ended"}')
    confine(job["cpu_s"], job["memory_bytes"], job["file_bytes"])
    outcome = loaded.get("error", "")
    if not outcome:
        try:
            tree = ast.parse(job["tests"])
            used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            space: dict[str, Any] = {"__name__": "__tests__", "__builtins__": builtins}
            for name in used & set(loaded["names"]) - set(dir(builtins)):
                space[name] = Remote(name, calls, replies, codec)
            exec(compile(tree, "<tests>", "exec"), space)
        except BaseException as error:
            outcome = f"{type(error).__name__}: {error}"[:300]
    verdict.write(json.dumps({"passed": not outcome, "detail": outcome}).encode() + b"\n")
    verdict.flush()


if __name__ == "__main__":
    main()
    os._exit(0)
