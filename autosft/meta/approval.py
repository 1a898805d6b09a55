"""An operator's word while a campaign runs: decisions approved or rejected, the campaign held and let go.

The campaign holds its folder, so the word comes as a small file in `requests/`; the campaign takes it, writes
it into the journal and goes on. A word that is in the journal already is not asked for again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson

from autosft.artifacts import write_atomic
from autosft.errors import CampaignError
from autosft.memory import Journal, read_journal
from autosft.meta.campaign import read_facts

REQUESTS = "requests"
HOLD = "hold.json"
JUDGED = "decision.judged"
POLL_S = 0.5
MAX_TEXT = 2000


def pending(out: Path) -> dict[str, Any] | None:
    """Return the decision that waits for a word: `round`, `decision`, and its headline; None if none does.

    Raises:
        CampaignError: There is no campaign in the folder.
    """
    facts = read_facts(out)
    entries = read_journal(out)
    if not facts.settings or not entries:
        return None
    taken = [entry for entry in entries if entry.kind == "decision.taken"]
    if not taken:
        return None
    last = taken[-1]
    key = str(last.data["decision"])
    number = int(last.key.split(".")[0])
    judged = any(entry.kind == JUDGED and entry.key == key for entry in entries)
    registered = any(entry.kind == "hypothesis.registered" and entry.key == str(number) for entry in entries)
    if judged or registered or not last.data.get("accepted") or not waiting_file(out, key).exists():
        return None
    return {"round": number, **dict(last.data)}


def judge(out: Path, *, approve: bool, reason: str = "", by: str = "operator") -> dict[str, Any]:
    """Approve or reject the decision that a campaign waits with.

    Args:
        out: Campaign folder.
        approve: The word.
        reason: Why; needed to reject, so that whoever reads the campaign later knows.
        by: Who says so.

    Returns:
        `round`, `decision`, `approved`.

    Raises:
        CampaignError: No decision waits, or a rejection has no reason.
    """
    reason, by = (" ".join(text.split())[:MAX_TEXT] for text in (reason, by))
    waiting = pending(out)
    if waiting is None:
        raise CampaignError(
            "no decision waits for approval",
            where=str(out),
            hint="decisions wait where campaign.approve=true; see `autosft status`",
        )
    if not approve and not reason:
        raise CampaignError(
            "a rejection needs a reason", where=f"round {waiting['round']}", hint='--reason "why"'
        )
    word = {"approved": approve, "reason": reason, "by": by}
    write_atomic(out / REQUESTS / f"word-{waiting['decision']}.json", orjson.dumps(word))
    return {"round": waiting["round"], "decision": waiting["decision"], "approved": approve}


def hold(out: Path, by: str = "operator") -> None:
    """Let a campaign wait before its next step; the step it is in ends first.

    Raises:
        CampaignError: There is no campaign in the folder.
    """
    read_facts(out)
    (out / REQUESTS).mkdir(exist_ok=True)
    write_atomic(out / REQUESTS / HOLD, orjson.dumps({"by": by, "time": time.time()}))


def release(out: Path) -> bool:
    """Let a held campaign go on; return whether it was held."""
    read_facts(out)
    held = (out / REQUESTS / HOLD).exists()
    (out / REQUESTS / HOLD).unlink(missing_ok=True)
    return held


def held(out: Path) -> bool:
    """Return whether a campaign is to wait."""
    return (out / REQUESTS / HOLD).exists()


def waiting_file(out: Path, decision: str) -> Path:
    """Return the file that says that a decision is waited with."""
    return out / REQUESTS / f"waiting-{decision}.json"


def wait_while_held(out: Path, say: Callable[[str], None]) -> None:
    """Return when a campaign is not held (any more)."""
    if held(out):
        say("held; `autosft resume` lets it go on")
        while held(out):
            time.sleep(POLL_S)
        say("goes on")


def await_word(out: Path, question: Mapping[str, Any], say: Callable[[str], None]) -> dict[str, Any]:
    """Return the operator's word on a decision, waiting for it as long as it takes."""
    key = str(question["decision"])
    (out / REQUESTS).mkdir(exist_ok=True)
    answer = out / REQUESTS / f"word-{key}.json"
    write_atomic(waiting_file(out, key), orjson.dumps(dict(question)))
    if not answer.exists():
        say("waits for approval: `autosft approve` or `autosft reject --reason TEXT`")
    while True:
        try:
            word = orjson.loads(answer.read_bytes())
            return {
                "approved": bool(word["approved"]),
                "reason": str(word.get("reason", ""))[:MAX_TEXT],
                "by": str(word.get("by", ""))[:200],
            }
        except FileNotFoundError:
            time.sleep(POLL_S)
        except (ValueError, KeyError, TypeError):
            answer.unlink(missing_ok=True)  # not a word: somebody wrote something else there


def word_of(journal: Journal, decision: str) -> Mapping[str, Any] | None:
    """Return the journalled word on a decision."""
    entry = journal.find(JUDGED, decision)
    return None if entry is None else entry.data


def record_word(out: Path, journal: Journal, decision: str, word: Mapping[str, Any]) -> None:
    """Write a word into the journal and remove the files it came by."""
    journal.append(JUDGED, decision, dict(word))
    waiting_file(out, decision).unlink(missing_ok=True)
    (out / REQUESTS / f"word-{decision}.json").unlink(missing_ok=True)
