"""Sealed held-out suites (I6): drawn by the operator, kept outside the campaign, scored once after its end.

A sealed folder holds `items.jsonl` (readable by its owner only), `seal.json` (fingerprint and digests, no
text and no name), and, in the end, `opened.json` and `scored.json`. The build is given the digests alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from autosft.artifacts import sync_folder, write_atomic
from autosft.errors import HoldoutError
from autosft.evals.suites.sealed import ITEMS, SEAL
from autosft.evals.suites.suite import Suite, read_items, write_items
from autosft.identity import fingerprint, hash_file

OPENED, SCORED = "opened.json", "scored.json"
Digest = Callable[[tuple[str, ...]], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Seal:
    """What a campaign may know of a sealed suite.

    Attributes:
        fingerprint: Fingerprint of the suite.
        items_sha: SHA-256 of the sealed items.
        n_items: Number of items.
        digests: Hashed n-grams as JSON data, as the decontamination index writes them; no text.
        prompts: Hashes of whole prompts: enough to tell that a suite shares some.
    """

    fingerprint: str
    items_sha: str
    n_items: int
    digests: Mapping[str, Any]
    prompts: Sequence[str] = ()


def seal(suite: Suite, folder: Path, *, campaign: Path, digest: Digest, dev: Iterable[Suite] = ()) -> Seal:
    """Seal a suite. Sealing the same suite again returns the same seal.

    Args:
        suite: The suite to hold out.
        folder: Where to keep it; outside `campaign`. Made with mode 0700, the items with 0600.
        campaign: The campaign's folder, which agents and builds see.
        digest: Hashes texts into JSON data; must not keep them. The build's index does this:
            `lambda texts: BenchmarkIndex.from_items("held_out", texts).to_json()`.
        dev: Suites that guide the campaign; none may share a prompt with the sealed one.

    Raises:
        HoldoutError: The folder lies inside the campaign or holds another suite, a dev suite shares prompts
        with
            the sealed one, or the digests hold text.
    """
    folder, inside = Path(folder).resolve(), Path(campaign).resolve()
    if folder == inside or inside in folder.parents:
        raise HoldoutError("a sealed suite must lie outside the campaign's folder", where=str(folder))
    texts = suite.reference_texts()
    check_disjoint(_hashed_prompts(suite), dev)
    digests = dict(digest(texts))
    _check_textless(digests, texts)
    if (folder / SEAL).exists():
        known = read_seal(folder)
        if known.fingerprint != suite.fingerprint:
            raise HoldoutError(
                "another suite is sealed here", where=str(folder), hint="choose an empty folder"
            )
        return known
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.chmod(folder, 0o700)
    before = os.umask(0o077)
    try:
        write_items(suite.items, folder / ITEMS)
    finally:
        os.umask(before)
    os.chmod(folder / ITEMS, 0o600)
    made = Seal(suite.fingerprint, hash_file(folder / ITEMS), len(suite), digests, _hashed_prompts(suite))
    write_atomic(folder / SEAL, orjson.dumps(asdict(made), option=orjson.OPT_SORT_KEYS))
    return made


def read_seal(folder: Path) -> Seal:
    """Return the seal of a folder; reads no item.

    Raises:
        HoldoutError: Nothing is sealed here, or the seal is unreadable.
    """
    try:
        return Seal(**orjson.loads((Path(folder) / SEAL).read_bytes()))
    except FileNotFoundError:
        raise HoldoutError("nothing is sealed here", where=str(folder)) from None
    except (ValueError, TypeError) as error:
        raise HoldoutError(f"unreadable seal: {error}", where=str(folder)) from None


def open_sealed(folder: Path, *, campaign: str, checkpoint: str, finished: bool) -> Suite:
    """Return a sealed suite for its one scoring.

    The opening is recorded. The same campaign and checkpoint may open again until the score is recorded, so
    that a killed scoring can be repeated.

    Args:
        folder: The sealed folder.
        campaign: Fingerprint of the campaign.
        checkpoint: Fingerprint of what will be scored.
        finished: Whether the campaign has ended, by its journal.

    Raises:
        HoldoutError: The campaign runs on, the suite was scored or opened for something else, or its items
        changed.
    """
    folder = Path(folder)
    known = read_seal(folder)
    if not finished:
        raise HoldoutError(
            "the campaign has not ended", where=str(folder), hint="a sealed suite is scored after it"
        )
    if (folder / SCORED).exists():
        raise HoldoutError(
            "this sealed suite was scored already", where=str(folder / SCORED), hint="seal another one"
        )
    if not (folder / ITEMS).exists() or hash_file(folder / ITEMS) != known.items_sha:
        raise HoldoutError("the items are not those that were sealed", where=str(folder / ITEMS))
    purpose = {"campaign": campaign, "checkpoint": checkpoint}
    if not _write_once(folder / OPENED, purpose):
        opened = _read_record(folder / OPENED)
        if opened != purpose:
            raise HoldoutError(
                f"this sealed suite was opened for {opened}", where=str(folder), hint="seal another one"
            )
    items = read_items(folder / ITEMS)
    return Suite(items[0].suite, items)


def record_scored(folder: Path, *, campaign: str, checkpoint: str, summary: Mapping[str, Any]) -> None:
    """Record the one scoring; from now on the suite cannot be opened.

    Raises:
        HoldoutError: It was scored before, or was not opened for this campaign and checkpoint.
    """
    folder = Path(folder)
    purpose = {"campaign": campaign, "checkpoint": checkpoint}
    if not (folder / OPENED).exists() or _read_record(folder / OPENED) != purpose:
        raise HoldoutError(
            "the suite was not opened for this checkpoint", where=str(folder), hint="use open_sealed"
        )
    if not _write_once(folder / SCORED, {**purpose, "summary": dict(summary)}):
        raise HoldoutError("this sealed suite was scored already", where=str(folder / SCORED))


def check_disjoint(held: Sequence[str], dev: Iterable[Suite]) -> None:
    """Check that suites that guide a campaign share no prompt with a sealed one.

    Args:
        held: The seal's `prompts`.
        dev: The suites.

    Raises:
        HoldoutError: One shares prompts; says how many, not which.
    """
    known = set(held)
    for other in dev:
        shared = sum(1 for prompt in _hashed_prompts(other) if prompt in known)
        if shared:
            what = f"suite {other.name} guides the campaign and shares {shared} prompts with the sealed one"
            raise HoldoutError(what, hint="a suite is dev or held-out, never both")


def _hashed_prompts(suite: Suite) -> list[str]:
    """Hash each item's turns as one text, letter case and white space evened out."""
    texts = (" ".join(message.content for message in item.messages) for item in suite.items)
    return sorted(fingerprint(" ".join(text.casefold().split())) for text in texts)


def _check_textless(digests: Mapping[str, Any], texts: tuple[str, ...]) -> None:
    written = orjson.dumps(digests).decode()
    for text in texts:
        if orjson.dumps(text).decode()[1:-1] in written and len(text) > 20:
            raise HoldoutError("the digests hold the text of an item", hint="hash the texts")


def _write_once(path: Path, data: Mapping[str, Any]) -> bool:
    """Create a record, or return False where there is one. A link publishes it whole, and only once."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    write_atomic(temporary, orjson.dumps(data, option=orjson.OPT_SORT_KEYS))
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        temporary.unlink()
    sync_folder(path.parent)
    return True


def _read_record(path: Path) -> dict[str, Any]:
    data = orjson.loads(path.read_bytes())
    return data if isinstance(data, dict) else {}
