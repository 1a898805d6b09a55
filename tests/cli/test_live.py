"""Following a campaign: plain lines are few and complete, the live view says where every seed stands."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from autosft.report.live import LiveFollower, PlainFollower, follow
from autosft.report.progress import CampaignProgress
from autosft.types import Event


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def progress(seed: int, step: int, **data: object) -> Event:
    return Event("progress", "", 1, {"seed": seed, "stage": "train", "step": step, "steps": 200, **data})


def test_plain_lines_are_rate_limited_over_all_seeds() -> None:
    stream, clock = io.StringIO(), Clock()
    follower = PlainFollower(Console(file=stream, width=80), interval_s=10, clock=clock)
    with follower as on_event:
        on_event(Event("campaign_start", "campaign lab", None, {"rounds": 5}))
        on_event(Event("round_start", "prune/verifier", 1))
        for step in range(200):
            for seed in (0, 1, 2):
                on_event(progress(seed, step, loss=2.0 - step / 200, tokens_per_s=4100.4))
            clock.now += 0.25
        on_event(Event("seed_done", "seed 0: score .512", 1, {"seed": 0}))
    lines = stream.getvalue().splitlines()
    shown = [line for line in lines if "seed 1 train" in line]
    assert 4 <= len(shown) <= 6, "50 s of progress at one line in 10 s"
    assert "loss 1." in shown[-1] and "4,100 tok/s" in shown[-1] and "s left" in shown[-1]
    assert lines[0].endswith("campaign lab") and lines[-1].endswith("round 1  seed 0: score .512")


def test_plain_lines_hold_no_control_characters_and_are_not_wrapped() -> None:
    stream = io.StringIO()
    with PlainFollower(Console(file=stream, width=80)) as on_event:
        on_event(Event("note", "word \x1b[2J[red]x[/red]\n" + "y" * 200, 0))
    (line,) = stream.getvalue().splitlines()
    assert "\x1b" not in line and "[red]x[/red] " + "y" * 200 in line


def test_a_closed_output_does_not_stop_the_campaign() -> None:
    class Closed(io.StringIO):
        calls = 0

        def write(self, text: str) -> int:
            Closed.calls += 1
            raise BrokenPipeError

    with PlainFollower(Console(file=Closed(), width=80)) as on_event:
        on_event(Event("note", "one"))
        calls = Closed.calls
        on_event(Event("note", "two"))
    assert Closed.calls == calls > 0


def test_the_console_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(follow(Console(file=io.StringIO())), PlainFollower)
    monkeypatch.setenv("TERM", "xterm")
    assert isinstance(follow(Console(file=io.StringIO(), force_terminal=True)), LiveFollower)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(follow(Console(file=io.StringIO(), force_terminal=True)), PlainFollower)


def test_the_live_view_shows_round_stage_and_every_seed() -> None:
    stream, clock = io.StringIO(), Clock()
    console = Console(file=stream, force_terminal=True, width=80, color_system=None)
    with LiveFollower(console, clock=clock) as on_event:
        on_event(Event("campaign_start", "campaign lab", None, {"rounds": 5}))
        on_event(Event("round_start", "prune/verifier", 1, {"seeds": [0, 1]}))
        on_event(Event("stage", "train", 1, {"stage": "train \x1b[2J"}))
        on_event(progress(0, 0))
        clock.now += 10
        on_event(progress(0, 100, loss=1.25, tokens_per_s=4000))
        drawing = Console(width=80, file=io.StringIO())
        drawing.print(on_event._draw())  # type: ignore[attr-defined]
    view = drawing.file.getvalue()  # type: ignore[attr-defined]
    assert "round 1 of 5" in view and "train" in view and "\x1b" not in view
    assert "seed 0 ━" in view and "100/200, loss 1.250, 4,000 tok/s, 10 s left" in view
    assert "seed 1" in view and "waiting" in view
    assert "prune/verifier" in stream.getvalue(), "the round's start stays on the screen"


def test_time_left_comes_from_rounds_that_were_really_run() -> None:
    state = CampaignProgress()
    state.apply(Event("campaign_start", "", None, {"rounds": 4}), 0)
    state.apply(Event("round_start", "", 0), 0)
    state.apply(Event("round_done", "", 0), 0.1)  # read back from the journal
    state.apply(Event("round_start", "", 1), 1)
    assert state.left_s(2) is None
    state.apply(Event("round_done", "", 1), 31)
    state.apply(Event("round_start", "", 2), 31)
    assert state.left_s(41) == pytest.approx(20 + 2 * 30)


def test_a_new_stage_starts_its_own_clock() -> None:
    state = CampaignProgress()
    state.apply(progress(0, 0, loss=2.0), 0)
    state.apply(progress(0, 200, loss=1.0), 100)
    state.apply(Event("progress", "", 1, {"seed": 0, "stage": "generate", "step": 0, "steps": 10}), 100)
    worker = state.seeds[0]
    assert worker.loss is None and worker.left_s(101) is None
    state.apply(Event("progress", "", 1, {"seed": 0, "stage": "generate", "step": 5, "steps": 10}), 105)
    assert worker.left_s(105) == pytest.approx(5)


@pytest.mark.parametrize(
    "data", [{}, {"seed": "x"}, {"step": None, "steps": "y"}, {"loss": float("nan"), "step": 1e400}]
)
def test_odd_event_data_never_raises(data: dict[str, object]) -> None:
    with PlainFollower(Console(file=io.StringIO()), interval_s=0) as on_event:
        for kind in (
            "campaign_start",
            "round_start",
            "stage",
            "progress",
            "seed_done",
            "round_done",
            "unknown",
        ):
            on_event(Event(kind, "text", None, data))
