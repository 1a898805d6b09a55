"""Fingerprints: what a thing is, never where it lies or when it was made."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson

FINGERPRINT_HEX = 24


def canonical_json(value: Any) -> bytes:
    """Encode JSON data so that equal data gives equal bytes (sorted keys, no spaces)."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_SERIALIZE_NUMPY)


def fingerprint(value: Any) -> str:
    """Return the 24-hex-digit SHA-256 prefix of `canonical_json(value)`."""
    return hashlib.sha256(canonical_json(value)).hexdigest()[:FINGERPRINT_HEX]


def text_hash(text: str) -> str:
    """Return the 16-hex-digit SHA-256 prefix of a text's UTF-8 bytes (lone surrogates kept)."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def hash_file(path: Path) -> str:
    """Return the full SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def hash_files(paths: Iterable[Path]) -> str:
    """Return one fingerprint over files: names and contents, in name order, folders ignored."""
    return fingerprint(sorted((path.name, hash_file(path)) for path in paths))
