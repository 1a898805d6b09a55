"""Text for terminals: harmless whatever it holds, and numbers people can read at a glance."""

from __future__ import annotations

import math
import os
import re
import unicodedata

# CSI and OSC sequences go as a whole: without their ESC their tail would stay behind as noise.
_SEQUENCES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x9b[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?")
_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)", re.IGNORECASE)
_SECRET_LENGTH = 8


def clean(value: object, *, limit: int | None = None) -> str:
    """Return a value as one line that cannot steer a terminal.

    Escape sequences, control characters and characters that reorder text (bidi overrides) are removed, line
    breaks and tabs become spaces, lone surrogates a replacement mark.

    Args:
        value: Anything; `str` is applied.
        limit: Longest result in characters; a longer one ends in an ellipsis.
    """
    text = _SEQUENCES.sub("", str(value))
    text = "".join(_safe(char) for char in text)
    text = re.sub(r" {2,}", " ", text).strip()
    return text if limit is None or len(text) <= limit else f"{text[: max(limit - 1, 0)]}…"


def _safe(char: str) -> str:
    if char in "\t\n\r\v\f\u2028\u2029":
        return " "
    category = unicodedata.category(char)
    if category == "Cs":
        return "\ufffd"
    # Cf holds the bidi controls and invisible joiners; Cc all of C0, DEL and C1.
    return "" if category in ("Cc", "Cf") else char


def redact(text: str) -> str:
    """Return a text without the values of environment variables whose names say that they are secret."""
    for name, value in os.environ.items():
        if _SECRET_NAME.search(name) and len(value) >= _SECRET_LENGTH:
            text = text.replace(value, f"[{name}]")
    return text


def score(value: object, *, signed: bool = False) -> str:
    """Return a score in [-1, 1] as `.512` (`+.040` when signed), and `-` where there is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return "-"
    rounded = round(value, 3) + 0.0  # adding zero turns -0.0 into 0.0
    text = f"{rounded:+.3f}" if signed and rounded else f"{rounded:.3f}"
    return text.replace("0.", ".", 1) if abs(float(text)) < 1 else text


def count(value: object, *, signed: bool = False) -> str:
    """Return a whole number with thousands separators, `-` where there is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return "-"
    return f"{round(value):+,}" if signed and round(value) else f"{round(value):,}"


def duration(seconds: float | None) -> str:
    """Return seconds as `8 s`, `3 min 20 s` or `2 h 05 min`; `?` where unknown."""
    if seconds is None or not math.isfinite(seconds) or seconds < 0:
        return "?"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
