"""Follow a campaign: a live view on a terminal, plain dated lines everywhere else.

Both take `Event`s from any thread. A closed output ends the lines, not the campaign.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from autosft.report.progress import CampaignProgress, SeedProgress
from autosft.report.text import clean, count, duration

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from autosft.types import Event

PLAIN_INTERVAL_S = 15.0
REDRAWS_PER_S = 4


class Follower(Protocol):
    """Takes events while its `with` block lasts."""

    def __call__(self, event: Event) -> None:
        """Show one event."""

    def __enter__(self) -> Follower:
        """Start showing."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop showing and leave the terminal as it was."""


def follow(console: Console, *, clock: Callable[[], float] = time.monotonic) -> Follower:
    """Return the follower that suits a console: live on a terminal, plain otherwise.

    Args:
        console: Where to write.
        clock: Monotonic seconds.
    """
    live = console.is_terminal and not console.is_dumb_terminal
    return LiveFollower(console, clock=clock) if live else PlainFollower(console, clock=clock)


class PlainFollower:
    """One line an event; progress lines at most every `interval_s` seconds, over all seeds together."""

    def __init__(
        self,
        console: Console,
        *,
        interval_s: float = PLAIN_INTERVAL_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console, self._interval_s, self._clock = console, interval_s, clock
        self._progress, self._lock = CampaignProgress(), threading.Lock()
        self._last_progress = float("-inf")
        self._closed = False

    def __enter__(self) -> PlainFollower:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def __call__(self, event: Event) -> None:
        """Print one event's line."""
        with self._lock:
            now = self._clock()
            self._progress.apply(event, now)
            if event.kind != "progress":
                self._line(event.round, event.text)
            elif now - self._last_progress >= self._interval_s:
                self._last_progress = now
                self._line(event.round, self._seeds_line(now))

    def _line(self, number: int | None, text: str) -> None:
        head = time.strftime("%H:%M:%S") + ("" if number is None else f"  round {number}")
        if self._closed:
            return
        try:
            # Past rich: a line is neither wrapped nor styled, and a closed pipe must not end the process.
            self._console.file.write(f"{head}  {clean(text)}\n")
            self._console.file.flush()
        except OSError:
            self._closed = True

    def _seeds_line(self, now: float) -> str:
        parts = [
            f"seed {seed} {_seed_words(worker, now)}" for seed, worker in sorted(self._progress.seeds.items())
        ]
        left = self._progress.left_s(now)
        return "; ".join(parts) + ("" if left is None else f"; campaign: {duration(left)} left")


class LiveFollower:
    """Finished rounds and notes scroll by; below them stand the round, its stage and a bar a seed."""

    def __init__(self, console: Console, *, clock: Callable[[], float] = time.monotonic) -> None:
        from rich.live import Live

        self._console, self._clock = console, clock
        self._progress, self._lock = CampaignProgress(), threading.RLock()
        self._live = Live(
            console=console,
            get_renderable=self._draw,
            refresh_per_second=REDRAWS_PER_S,
            transient=True,
            redirect_stderr=True,
        )

    def __enter__(self) -> LiveFollower:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def __call__(self, event: Event) -> None:
        """Take in one event; all but progress also leave a line that stays."""
        from rich.text import Text

        with self._lock:
            self._progress.apply(event, self._clock())
        if event.kind != "progress":
            head = "" if event.round is None else f"round {event.round}  "
            self._console.print(
                Text(head, style="dim") + Text(clean(event.text), style=_STYLES.get(event.kind, ""))
            )

    def _draw(self) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        with self._lock:
            now, progress = self._clock(), self._progress
            if progress.round is None:
                return Text(clean(progress.stage) or "starting", style="dim")
            of = "" if progress.rounds is None else f" of {progress.rounds}"
            head = Text(f"round {progress.round}{of}", style="bold")
            left = progress.left_s(now)
            head.append("" if left is None else f"  about {duration(left)} left", style="dim")
            stage = Text(f"  {clean(progress.stage)}", style="cyan", overflow="ellipsis", no_wrap=True)
            return Group(head, stage, *(_bar_line(s, w, now) for s, w in sorted(progress.seeds.items())))


_STYLES = {"round_done": "green", "claim": "bold", "campaign_done": "bold", "note": "yellow", "stage": "dim"}
_BAR_CELLS = 14


def _bar_line(seed: int, worker: SeedProgress, now: float) -> RenderableType:
    from rich.text import Text

    filled = round(worker.share * _BAR_CELLS) if worker.stage != "done" else _BAR_CELLS
    line = Text(f"  seed {seed} ", overflow="ellipsis", no_wrap=True)
    line.append("━" * filled, style="green").append("━" * (_BAR_CELLS - filled), style="dim")
    return line.append(f" {_seed_words(worker, now)}")


def _seed_words(worker: SeedProgress, now: float) -> str:
    """Say in words where a worker stands: `train 120/234, loss 1.234, 4,100 tok/s, 8 s left`."""
    if not worker.stage:
        return "waiting"
    if worker.stage == "done":
        return "done"
    words = clean(worker.stage, limit=20) + (f" {worker.step:,}/{worker.steps:,}" if worker.steps else "")
    words += "" if worker.loss is None else f", loss {worker.loss:.3f}"
    words += "" if worker.tokens_per_s is None else f", {count(worker.tokens_per_s)} tok/s"
    left = worker.left_s(now)
    return words + ("" if left is None else f", {duration(left)} left")
