"""What the pages show, as plain data. Nothing here writes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import orjson

from autosft.artifacts import ArtifactStore
from autosft.errors import ArtifactError, AutosftError, CampaignError
from autosft.memory.transcripts import read_exchanges
from autosft.meta import views
from autosft.meta.approval import held, pending
from autosft.meta.views_diff import diff
from autosft.meta.views_memory import hypotheses, lineage, open_history
from autosft.meta.views_report import campaign_report
from autosft.report import figures, summary

LOG_BYTES = 64 * 1024
_LOG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}\.log")
TEXT = 20_000


def stamp(out: Path) -> str:
    """Return a text that changes whenever the campaign's folder says something new."""
    parts = []
    for file in [out / "journal.jsonl", *_progress(out)[-4:], *sorted((out / "requests").glob("*.json"))]:
        try:
            found = file.stat()
        except OSError:
            continue
        parts.append(f"{file.name}:{found.st_size}:{found.st_mtime_ns}")
    return "|".join(parts)


def overview(out: Path) -> dict[str, Any]:
    """Return a campaign at a glance: figures, sentences, rounds, runs at work, what waits for a word."""
    view = campaign_report(out)
    return {
        "v": view,
        "headline": summary.headline(view) if view["rounds"] else "No round is recorded yet.",
        "sentences": summary.sentences(view) if view["rounds"] else [],
        "figures": figures.draw(view) if view["rounds"] else dict.fromkeys(("scores", "actions", "branches")),
        "running": running(out),
        "waiting": pending(out),
        "held": held(out),
    }


def running(out: Path) -> list[dict[str, Any]]:
    """Return the runs that are at work: the last line of progress of each that has no result yet."""
    found = []
    for file in _progress(out):
        if file.with_suffix(".result").exists():
            continue
        line = _last_line(file)
        try:
            found.append({"run": file.stem, **orjson.loads(line)})
        except ValueError:
            continue
    return found


def round_page(out: Path, number: int) -> dict[str, Any]:
    """Return one round: decision, hypothesis, recipe, what it did to the rows.

    Raises:
        CampaignError: There is no such round.
    """
    entries, history = open_history(out)
    facts = next((r for r in history.rounds if r.round == number), None)
    if facts is None:
        raise CampaignError(f"there is no round {number}", where=str(out))
    store = ArtifactStore(out / "artifacts")
    decisions = []
    for entry in entries:
        if entry.kind == "decision.taken" and entry.key.split(".")[0] == str(number):
            try:
                data = dict(store.load("decision", str(entry.data["decision"])).data)
            except ArtifactError:
                continue
            word = next(
                (e.data for e in entries if e.kind == "decision.judged" and e.key == entry.data["decision"]),
                None,
            )
            decisions.append({**data, "word": word})
    compared = None
    if facts.parent is not None and facts.build:
        try:
            compared = diff(out, facts.parent, number, samples=5)
        except AutosftError as error:
            compared = {"error": str(error)}
    return {
        "round": next(r for r in views.rounds(out) if r["round"] == number),
        "data": dict(facts.data),
        "hypothesis": next((h for h in hypotheses(out) if h["round"] == number), None),
        "node": next((n for n in lineage(out) if n["round"] == number), None),
        "decisions": decisions,
        "diff": compared,
        "recipe": orjson.dumps(facts.recipe.to_json(), option=orjson.OPT_INDENT_2).decode(),
        "numbers": [r.round for r in history.rounds],
    }


def leaves_page(out: Path) -> dict[str, Any]:
    """Return the leaves' scores over rounds."""
    view = campaign_report(out)
    rounds = [r["round"] for r in view["rounds"] if r["score"] is not None]
    return {"leaves": view["leaves"], "rounds": rounds[-24:], "supply": views.taxonomy(out) if rounds else []}


def transcripts(out: Path) -> list[dict[str, Any]]:
    """Return the exchanges with language models, oldest first."""
    found = []
    for exchange in read_exchanges(out):
        request = exchange.data["request"]
        found.append(
            {
                "id": exchange.fingerprint,
                "role": request.get("role", ""),
                "round": request.get("round"),
                "purpose": request.get("purpose", ""),
                "model": request.get("model", ""),
                "tokens": {k: v for k, v in exchange.measured.items() if "token" in k},
            }
        )
    return found


def transcript(out: Path, key: str) -> dict[str, Any]:
    """Return one exchange, its texts cut to a readable length.

    Raises:
        CampaignError: There is no such exchange.
    """
    for exchange in read_exchanges(out):
        if exchange.fingerprint == key:
            return {
                "id": key,
                "request": _pretty(exchange.data["request"]),
                "outcome": _pretty(exchange.data["outcome"]),
                "measured": dict(exchange.measured),
            }
    raise CampaignError("there is no such exchange", where=str(out))


def runs(out: Path) -> list[dict[str, Any]]:
    """Return the training runs of a campaign with their logs, newest first."""
    found = []
    for log in sorted((out / "logs").glob("*.log"), key=lambda file: -file.stat().st_mtime):
        result: dict[str, Any] = {}
        if log.with_suffix(".result").exists():
            try:
                result = orjson.loads(log.with_suffix(".result").read_bytes())
            except ValueError:
                result = {"cause": "its result cannot be read"}
        progress = log.with_suffix(".progress")
        state = "log" if not progress.exists() else (result.get("cause") or "done") if result else "at work"
        found.append({"name": log.name, "bytes": log.stat().st_size, "state": state})
    return found


def log_text(out: Path, name: str) -> str:
    """Return the end of a log.

    Raises:
        CampaignError: There is no such log.
    """
    file = out / "logs" / name
    if not _LOG.fullmatch(name) or not file.is_file():
        raise CampaignError("there is no such log", where=str(out))
    with file.open("rb") as stream:
        stream.seek(max(0, file.stat().st_size - LOG_BYTES))
        return stream.read().decode("utf-8", "replace")


def _progress(out: Path) -> list[Path]:
    files = []
    for file in (out / "logs").glob("*.progress"):
        try:
            files.append((file.stat().st_mtime_ns, file))
        except OSError:
            continue
    return [file for _, file in sorted(files)]


def _last_line(file: Path) -> bytes:
    with file.open("rb") as stream:
        stream.seek(max(0, file.stat().st_size - 4096))
        lines = stream.read().splitlines()
    return lines[-1] if lines else b""


def _pretty(data: Any) -> str:
    text = orjson.dumps(data, option=orjson.OPT_INDENT_2).decode("utf-8", "replace").replace("\\n", "\n")
    return text if len(text) <= TEXT else f"{text[:TEXT]}\n... {len(text) - TEXT:,} characters more"
