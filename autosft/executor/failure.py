"""Why a worker failed: classification, and which causes are worth another try."""

from __future__ import annotations

import signal
from pathlib import Path

from autosft.errors import BaseFingerprintError, BaseModelError, ExecutorError

NON_FINITE, OUT_OF_MEMORY, KILLED = "non_finite_loss", "out_of_memory", "killed"
TIMEOUT, BAD_MODEL, ERROR = "timeout", "bad_model", "error"

#: These may pass on a second try; the others repeat exactly with equal inputs.
RETRIED = frozenset({OUT_OF_MEMORY, KILLED, TIMEOUT})

_MEMORY_PHRASES = (
    "out of memory",
    "not enough memory",
    "can't allocate memory",
    "cannot allocate memory",
    "bad_alloc",
)


class NonFiniteLossError(ExecutorError):
    """Loss or gradient became infinite or NaN; an equal run would do the same."""


class RankLostError(ExecutorError):
    """A process of a run on several ranks ended without a reason of its own; another try may pass."""


class RankMemoryError(ExecutorError):
    """A process of a run on several ranks had too little memory; smaller micro-batches may do."""


def cause_of(error: BaseException) -> str:
    """Classify an exception raised inside a worker."""
    if isinstance(error, NonFiniteLossError):
        return NON_FINITE
    if isinstance(error, RankLostError):
        return KILLED
    if isinstance(error, RankMemoryError):
        return OUT_OF_MEMORY
    if isinstance(error, BaseModelError | BaseFingerprintError):
        return BAD_MODEL
    text = str(error).lower()
    if isinstance(error, MemoryError) or any(phrase in text for phrase in _MEMORY_PHRASES):
        return OUT_OF_MEMORY
    return ERROR


def cause_of_exit(code: int, oom_kills: int) -> tuple[str, str]:
    """Classify a worker that ended without a result.

    Args:
        code: Its return code; negative is a signal.
        oom_kills: Processes the kernel killed for memory while it ran.

    Returns:
        (cause, one line for people).
    """
    if code < 0:
        name = signal.Signals(-code).name if -code in {s.value for s in signal.Signals} else f"signal {-code}"
        if -code == signal.SIGKILL and oom_kills > 0:
            return OUT_OF_MEMORY, "ended by the kernel for lack of memory"
        return KILLED, f"ended by {name}"
    if code == 128 + signal.SIGKILL:
        return KILLED, "ended by SIGKILL"
    return ERROR, f"ended with code {code} and no result"


def kernel_oom_kills() -> int:
    """Return how many processes of this control group the kernel killed for memory so far; 0 if unknown."""
    for line in _read_lines(Path("/sys/fs/cgroup/memory.events")):
        name, _, value = line.partition(" ")
        if name == "oom_kill" and value.isdigit():
            return int(value)
    return 0


def _read_lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii").splitlines()
    except OSError:
        return []
