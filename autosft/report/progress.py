"""Where a running campaign stands, folded from its events; no drawing and no clock of its own.

Keys of `Event.data` that are read, all optional: `rounds` (campaign_start, round_start: the last round's
number), `stage` (stage, progress), `seeds` (round_start: the training seeds), and of a progress event `seed`,
`step`, `steps`, `loss`, `tokens_per_s`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from autosft.types import Event

# A round that took less was read back from the journal and says nothing about how long a round takes.
_SHORTEST_ROUND_S = 1.0


@dataclass
class SeedProgress:
    """One seed's worker.

    Attributes:
        stage: train, convert, generate, score; or done.
        step: Steps finished of `steps`; 0 of 0 where the stage has none.
        loss: Last training loss, or None.
        tokens_per_s: Last throughput, or None.
        started: Clock when the stage's first event came.
        first_step: Step of that event.
    """

    stage: str = ""
    step: int = 0
    steps: int = 0
    loss: float | None = None
    tokens_per_s: float | None = None
    started: float = 0.0
    first_step: int = 0

    @property
    def share(self) -> float:
        """Finished share of the stage, in [0, 1]."""
        return min(1.0, self.step / self.steps) if self.steps > 0 else 0.0

    def left_s(self, now: float) -> float | None:
        """Return the seconds the stage still takes at its pace so far, or None before the pace is known."""
        done = self.step - self.first_step
        if done <= 0 or now <= self.started or self.steps <= 0:
            return None
        return max(0, self.steps - self.step) * (now - self.started) / done


@dataclass
class CampaignProgress:
    """The whole campaign.

    Attributes:
        round: Current round, or None before the first.
        rounds: Last round's number, or None where unknown.
        stage: What the campaign is doing.
        seeds: Training seed -> its worker's progress, of the current round.
    """

    round: int | None = None
    rounds: int | None = None
    stage: str = ""
    seeds: dict[int, SeedProgress] = field(default_factory=dict)
    _round_started: float | None = None
    _round_seconds: list[float] = field(default_factory=list)

    def apply(self, event: Event, now: float) -> None:
        """Take in one event; `now` is a monotonic clock in seconds."""
        known_rounds = _whole(event.data.get("rounds"))
        if known_rounds is not None and event.kind in ("campaign_start", "round_start"):
            self.rounds = known_rounds
        if event.kind == "round_start":
            self.round, self.stage = event.round, ""
            self._round_started = now
            listed = event.data.get("seeds")
            known = (
                [s for s in map(_whole, listed) if s is not None] if isinstance(listed, (list, tuple)) else []
            )
            self.seeds = {seed: SeedProgress() for seed in known}
        elif event.kind == "stage":
            self.stage = str(event.data.get("stage") or event.text)
        elif event.kind == "progress":
            self._apply_progress(event.data, now)
        elif event.kind == "seed_done":
            self._seed(event.data).stage = "done"
        elif event.kind == "round_done":
            if self._round_started is not None and now - self._round_started >= _SHORTEST_ROUND_S:
                self._round_seconds.append(now - self._round_started)
            self._round_started, self.stage, self.seeds = None, "", {}

    def _seed(self, data: Mapping[str, Any]) -> SeedProgress:
        seed = _whole(data.get("seed"))
        return self.seeds.setdefault(0 if seed is None else seed, SeedProgress())

    def _apply_progress(self, data: Mapping[str, Any], now: float) -> None:
        worker = self._seed(data)
        stage, step = str(data.get("stage") or worker.stage), _whole(data.get("step")) or 0
        if stage != worker.stage or step < worker.step:
            worker.stage, worker.started, worker.first_step = stage, now, step
            worker.loss = worker.tokens_per_s = None
        worker.step, worker.steps = step, _whole(data.get("steps")) or 0
        worker.loss = _number(data.get("loss"), worker.loss)
        worker.tokens_per_s = _number(data.get("tokens_per_s"), worker.tokens_per_s)

    def left_s(self, now: float) -> float | None:
        """Return the seconds the campaign still takes if its rounds go on as so far, or None."""
        if self.rounds is None or self.round is None or not self._round_seconds:
            return None
        mean = sum(self._round_seconds) / len(self._round_seconds)
        this_round = 0.0 if self._round_started is None else max(0.0, mean - (now - self._round_started))
        return this_round + mean * max(0, self.rounds - self.round)


def _whole(value: Any) -> int | None:
    number = _number(value, None)
    return None if number is None or not math.isfinite(number) else int(number)


def _number(value: Any, fallback: float | None) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else fallback
