"""What a campaign's journal says happened: rounds, claims, the incumbent. Read-only; works on a running
campaign."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from autosft.artifacts import ArtifactStore
from autosft.identity import fingerprint
from autosft.memory import Entry, Journal
from autosft.subagents.evidence import PastProposal, PastRound
from autosft.types import Recipe, SeedReceipt


@dataclass(frozen=True, slots=True)
class RoundFacts:
    """One recorded round; `data` is the `round` artifact's, `claim` the data of its claim entry (or None).

    `score` is the mean over every training seed measured, the claim's fresh ones included; None if abandoned.
    """

    round: int
    status: str
    parent: int | None
    recipe: Recipe
    build: str
    effect: str
    score: float | None
    seeds: tuple[SeedReceipt, ...]
    fresh: tuple[SeedReceipt, ...]
    data: Mapping[str, Any]
    claim: Mapping[str, Any] | None

    @property
    def measured(self) -> bool:
        """True where every seed was scored."""
        return self.status == "ok" and self.score is not None

    @property
    def receipts(self) -> tuple[SeedReceipt, ...]:
        """Receipts of all seeds measured, the claim's fresh ones included."""
        return (*self.seeds, *self.fresh)


@dataclass(frozen=True, slots=True)
class Fork:
    """Two rounds from one parent: the continuation and its rival (see `revise`)."""

    trigger: str
    parent: int
    continuation: int
    rival: int


class History:
    """The journal's rounds and claims, oldest first."""

    def __init__(self, entries: Journal | Iterable[Entry], store: ArtifactStore) -> None:
        self._entries = list(entries)
        self._store = store

    @cached_property
    def _claims(self) -> dict[int, Mapping[str, Any]]:
        return {int(e.key): e.data for e in self._entries if e.kind == "claim.decided"}

    @cached_property
    def rounds(self) -> tuple[RoundFacts, ...]:
        """Recorded rounds, oldest first."""
        return tuple(
            self._read(int(e.key), e.data["record"]) for e in self._entries if e.kind == "round.recorded"
        )

    def _read(self, number: int, record: str) -> RoundFacts:
        data = self._store.load("round", record).data
        claim = self._claims.get(number)
        score = data["score"]
        if claim is not None and claim.get("score_all") is not None:
            score = claim["score_all"]
        return RoundFacts(
            round=number,
            status=data["status"],
            parent=data["parent"],
            recipe=Recipe.from_json(data["recipe"]),
            build=data["build"],
            effect=data["effect"],
            score=score,
            seeds=tuple(SeedReceipt(**r) for r in data["seeds"]),
            fresh=tuple(SeedReceipt(**r) for r in (claim or {}).get("fresh", ())),
            data=data,
            claim=claim,
        )

    @property
    def pending_claim(self) -> int | None:
        """The recorded round whose claim is not decided, if any."""
        if self.rounds and self.rounds[-1].round not in self._claims:
            return self.rounds[-1].round
        return None

    @property
    def next_round(self) -> int:
        """Number of the first round that is not recorded."""
        return len(self.rounds)

    @cached_property
    def invalidated(self) -> dict[int, str]:
        """Round -> why it does not count: invalidated by an operator, or descended from such a round."""
        found = {int(e.key): str(e.data["reason"]) for e in self._entries if e.kind == "round.invalidated"}
        for facts in self.rounds:
            if facts.round not in found and facts.parent in found:
                found[facts.round] = f"descends from round {facts.parent}, which was invalidated"
        return found

    @property
    def incumbent(self) -> RoundFacts | None:
        """The valid round with the highest mean that breaks no guard suite; parent of the next one."""
        able = [
            r
            for r in self.rounds
            if r.measured and not r.data["guards_broken"] and r.round not in self.invalidated
        ]
        return max(able, key=lambda r: (r.score or 0.0, -r.round), default=None)

    @property
    def claimed_best(self) -> int | None:
        """Round of the latest granted claim (round 0 is the first reference), or None before round 0."""
        granted = [
            number
            for number, claim in self._claims.items()
            if claim["granted"] and number not in self.invalidated
        ]
        return max(granted, default=None)

    @property
    def effects(self) -> dict[str, int]:
        """Effect fingerprint (the pool trained on) -> first round that had it."""
        known: dict[str, int] = {}
        for facts in self.rounds:
            if facts.effect:
                known.setdefault(facts.effect, facts.round)
        return known

    @cached_property
    def forks(self) -> tuple[Fork, ...]:
        """Revisions opened so far."""
        names = ("trigger", "parent", "continuation", "rival")
        return tuple(
            Fork(*(e.data[name] for name in names)) for e in self._entries if e.kind == "revision.opened"
        )

    @property
    def closed_forks(self) -> list[Mapping[str, Any]]:
        """Outcomes of the revisions whose two branches are recorded."""
        return [e.data for e in self._entries if e.kind == "revision.closed"]

    @property
    def open_fork(self) -> Fork | None:
        """The revision whose rival is not recorded yet, if any; it dies with its parent."""
        pending = (f for f in self.forks if f.rival >= len(self.rounds))
        return next((f for f in pending if f.parent not in self.invalidated), None)

    def parent_for(self, number: int) -> RoundFacts | None:
        """Return what round `number` starts from: a fork's parent, an operator's choice, or the incumbent."""
        for fork in self.forks:
            if number in (fork.continuation, fork.rival) and fork.parent not in self.invalidated:
                return self.rounds[fork.parent]
        chosen = [e for e in self._entries if e.kind == "parent.chosen" and e.key == str(number)]
        if chosen:
            return self.rounds[int(chosen[-1].data["parent"])]
        return self.incumbent

    @property
    def digest(self) -> str:
        """Fingerprint of everything that decides the next round, wall times left out."""
        kinds = ("round.recorded", "claim.decided", "round.invalidated", "revision.opened", "parent.chosen")
        return fingerprint([e.sha for e in self._entries if e.kind in kinds])

    def attempts(self, analyst: str, parent: int) -> int:
        """Return how many of an analyst's proposals were run from a parent round."""
        return sum(1 for r in self.rounds if r.parent == parent and analyst in r.data["analysts"])

    def past(self) -> tuple[PastRound, ...]:
        """Return the rounds as research history shows them to agents."""
        outcomes = {int(e.key): e.data for e in self._entries if e.kind == "hypothesis.resolved"}
        return tuple(
            PastRound(
                round=r.round,
                parent=r.parent,
                kinds=tuple(r.data["kinds"]),
                families=tuple(r.data["families"]),
                analysts=tuple(r.data["analysts"]),
                score=r.score,
                delta=r.data["delta_parent"],
                outcome=outcomes.get(r.round, {}).get("outcome", "open"),
                predicted=r.data["predicted"],
                actual=r.data["leaf_deltas"],
                leaf_scores=r.data["leaf_scores"],
            )
            for r in self.rounds
        )

    def past_proposals(self) -> tuple[PastProposal, ...]:
        """Return every proposal made so far, with what became of it."""
        found = []
        for entry in self._entries:
            if entry.kind != "decision.taken":
                continue
            decision = self._store.load("decision", entry.data["decision"]).data
            number = int(entry.key.split(".")[0])
            found += [PastProposal(number, p["analyst"], p, True) for p in decision["accepted"]]
            found += [
                PastProposal(number, r["proposal"]["analyst"], r["proposal"], False)
                for r in decision["rejected"]
            ]
        return tuple(found)
