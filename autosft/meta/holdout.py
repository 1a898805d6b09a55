"""The operator's side of held-out suites (I6): sealing one for a campaign, its one scoring after the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import orjson

from autosft.actions import BenchmarkIndex
from autosft.actions.decontaminate import HELD_OUT
from autosft.artifacts import ArtifactStore, write_atomic
from autosft.errors import CampaignError, HoldoutError
from autosft.evals import ScoreTable, Suite, compare, estimate, open_sealed, read_seal, record_scored, seal
from autosft.evals.suites.sealed import SEAL
from autosft.executor.evaluate import evaluate
from autosft.identity import fingerprint
from autosft.memory import CampaignLock, Journal
from autosft.meta.campaign import CAMPAIGN, read_facts
from autosft.meta.history import History, RoundFacts
from autosft.meta.sealed import HOLDOUT, sealed_folder
from autosft.types import Event, GenerateSettings

SCORED, REFUSED = "holdout.scored", "holdout.refused"
OnEvent = Callable[[Event], None]


def seal_suite(out: Path, suite: Suite, dev: Sequence[Suite] = ()) -> dict[str, Any]:
    """Seal a suite for a campaign that has not started; the campaign folder gets digests only.

    Args:
        out: The campaign's folder; need not exist.
        suite: What to hold out.
        dev: Suites that will guide the campaign.

    Returns:
        `folder` (where the items lie, for the operator), `fingerprint`, `n_items`.

    Raises:
        HoldoutError: The campaign has started, another suite is sealed for it, or a dev suite shares prompts.
    """
    out = out.expanduser().absolute()
    if (out / CAMPAIGN).exists() and not (out / HOLDOUT).exists():
        raise HoldoutError(
            "the campaign has started without a sealed suite",
            where=str(out),
            hint="its builds were not compared with one; seal before the first start",
        )
    if (out / HOLDOUT).exists():
        known = orjson.loads((out / HOLDOUT).read_bytes())
        if known.get("fingerprint") != suite.fingerprint:
            raise HoldoutError("another suite is sealed for this campaign", where=str(out / HOLDOUT))
    folder = sealed_folder(out) / "twin-1"
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    made = seal(
        suite,
        folder,
        campaign=out,
        digest=lambda texts: BenchmarkIndex.from_items(HELD_OUT, texts).to_json(),
        dev=dev,
    )
    out.mkdir(parents=True, exist_ok=True)
    write_atomic(out / HOLDOUT, orjson.dumps(asdict(made)))
    return {"folder": str(folder), "fingerprint": made.fingerprint, "n_items": made.n_items}


def score_holdout(out: Path, on_event: OnEvent | None = None) -> dict[str, Any]:
    """Score the claimed best, and round 0 beside it, on the campaign's sealed suite: once.

    A scoring that was killed goes on; one that finished is refused ever after, and so is any further round of
    the campaign. Refusals are journalled. Answers and verdicts stay with the operator, beside the items.

    Args:
        out: The campaign's folder.
        on_event: Gets progress.

    Returns:
        `claimed_best` (round), `score`, `reference` (means with intervals), `difference` (text), `n_items`.

    Raises:
        HoldoutError: Nothing is sealed, the campaign runs on, or the suite was scored.
        CampaignError: There is no campaign, or its checkpoints are gone.
        CampaignLockedError: The campaign is running.
    """
    out = out.expanduser().absolute()
    if not (out / CAMPAIGN).exists():
        raise CampaignError("no campaign here", where=str(out), hint="name the folder of a finished one")
    with CampaignLock(out):
        journal, store = Journal(out), ArtifactStore(out / "artifacts")
        history = History(journal, store)
        best = history.claimed_best
        rounds = [r for r in history.rounds if r.round in {0, best} and r.measured]
        try:
            folder = _sealed_for(out)
            if best is None or not rounds:
                raise HoldoutError("no round is measured yet", where=str(out))
            purpose = fingerprint([_checkpoints(r) for r in rounds])
            campaign = read_facts(out).settings_fingerprint
            suite = open_sealed(
                folder, campaign=campaign, checkpoint=purpose, finished=_finished(journal, history)
            )
        except HoldoutError as error:
            attempts = sum(1 for entry in journal if entry.kind == REFUSED)
            journal.append(REFUSED, str(attempts), {"why": error.what})
            raise
        tables = {r.round: _score_round(out, folder, suite, r, on_event) for r in rounds}
        summary = _summary(tables, best)
        record_scored(folder, campaign=campaign, checkpoint=purpose, summary=summary)
        # The score stays with the operator: the journal lies where agents of later campaigns may read.
        journal.append(SCORED, "1", {"claimed_best": best, "seal": read_seal(folder).fingerprint})
        return summary


def refuse_if_scored(journal: Journal, stop_reason: str) -> None:
    """Refuse to go on with a campaign whose sealed suite was scored; one that is finished may be shown.

    Raises:
        HoldoutError: It would go on.
    """
    if stop_reason or all(entry.kind != SCORED for entry in journal):
        return
    attempts = sum(1 for entry in journal if entry.kind == REFUSED)
    journal.append(REFUSED, str(attempts), {"why": "further rounds after the scoring"})
    raise HoldoutError(
        "the held-out suite was scored, which ended the campaign", hint="start another one with --out"
    )


def _finished(journal: Journal, history: History) -> bool:
    """Whether the journal's last word on rounds is that the campaign stopped."""
    kinds = [e.kind for e in journal if e.kind in ("round.recorded", "claim.decided", "campaign.stopped")]
    return bool(kinds) and kinds[-1] == "campaign.stopped" and history.pending_claim is None


def _sealed_for(out: Path) -> Path:
    """Return the folder of the suite that the campaign's digests are of."""
    try:
        wanted = orjson.loads((out / HOLDOUT).read_bytes())["fingerprint"]
    except (OSError, ValueError, KeyError):
        raise HoldoutError(
            "no suite is sealed for this campaign",
            where=str(out),
            hint="autosft holdout seal, before it starts",
        ) from None
    for folder in sorted(sealed_folder(out).glob("twin-*")):
        if (folder / SEAL).exists() and read_seal(folder).fingerprint == wanted:
            return folder
    raise HoldoutError("the sealed folder is gone", where=str(sealed_folder(out)), hint="restore it")


def _checkpoints(facts: RoundFacts) -> list[str]:
    return [f"{receipt.seed}:{receipt.checkpoint}" for receipt in facts.receipts]


def _score_round(
    out: Path, folder: Path, suite: Suite, facts: RoundFacts, on_event: OnEvent | None
) -> ScoreTable:
    import pyarrow.parquet as pq

    frozen = read_facts(out).settings
    known = {f.name for f in fields(GenerateSettings)}
    generate = GenerateSettings(**{name: frozen[f"generate.{name}"] for name in known})
    columns: dict[int, Mapping[str, Any]] = {}
    for receipt in facts.receipts:
        checkpoint = out / receipt.checkpoint
        if not checkpoint.is_dir():
            raise CampaignError(
                "a checkpoint is gone", where=str(checkpoint), hint="keep all until the scoring"
            )
        place = folder / "scores" / f"round-{facts.round}-seed-{receipt.seed}"
        evaluate(
            checkpoint,
            [suite],
            place,
            settings={suite.name: generate},
            seed=receipt.seed,
            on_event=on_event,
        )
        table = pq.read_table(place / suite.name / "items.parquet", columns=["item", "leaf", "strict"])
        columns[receipt.seed] = table.to_pydict()
    return ScoreTable.from_columns(columns)


def _summary(tables: Mapping[int, ScoreTable], best: int) -> dict[str, Any]:
    def interval(table: ScoreTable) -> dict[str, Any]:
        found = estimate(table)
        return {
            "mean": round(found.score, 6),
            "ci_low": round(found.ci_low, 6),
            "ci_high": round(found.ci_high, 6),
            "seeds": found.n_seeds,
        }

    compared = compare(tables[0], tables[best]) if best != 0 else None
    return {
        "claimed_best": best,
        "score": interval(tables[best]),
        "reference": interval(tables[0]),
        "difference": "round 0 is the claimed best" if compared is None else compared.text(),
        "n_items": len(tables[best].items),
    }
