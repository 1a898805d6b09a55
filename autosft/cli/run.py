"""Commands that train: `run` and `resume`."""

from __future__ import annotations

import functools
import shlex
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer

from autosft import meta
from autosft.cli.shared import PROGRAM, Folder, existing

INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM


class _Terminated(KeyboardInterrupt):
    """Stops as Ctrl-C does, with its own exit code."""


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command()(run)
    app.command()(resume)


def run(
    overrides: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE", help="Settings, e.g. campaign.rounds=8 model=PATH components=base."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Campaign folder; default runs/<name>.")
    ] = None,
    multirun: Annotated[
        bool,
        typer.Option("--multirun", "-m", help="A campaign for each combination of values: lab.seed=0,1."),
    ] = False,
) -> None:
    """Run a campaign or go on with it.

    A finished campaign is shown again; nothing is trained twice.
    """
    from autosft.config import load_config

    if multirun:
        _run_each(overrides or [], out or Path("runs/multirun"))
        return
    config = load_config(overrides or [])
    folder = out or Path(config.campaign.out or Path("runs") / config.campaign.name)
    _follow_campaign(folder, lambda on_event: meta.run_campaign(config, folder, on_event))


def _run_each(overrides: list[str], out: Path) -> None:
    """Run the campaigns of a sweep one after another; one that fails does not keep the next from running."""
    from autosft import report
    from autosft.config import load_config
    from autosft.config.multirun import expand
    from autosft.errors import AutosftError

    campaigns = expand(overrides)
    configs = [(name, load_config(settings)) for name, settings in campaigns]
    failed = []
    for number, (name, config) in enumerate(configs, 1):
        typer.echo(f"{name} ({number} of {len(configs)})", err=True)
        try:
            _follow_campaign(out / name, functools.partial(meta.run_campaign, config, out / name))
        except AutosftError as error:
            typer.echo(f"failed: {name}: {report.clean(error)}", err=True)
            failed.append(name)
    typer.echo(f"{len(configs) - len(failed)} of {len(configs)} campaigns in {out}", err=True)
    if failed:
        raise typer.Exit(1)


def resume(folder: Folder) -> None:
    """Go on with the settings of the first start."""
    existing(folder)
    _follow_campaign(folder, lambda on_event: meta.resume_campaign(folder, on_event))


def _follow_campaign(folder: Path, start: Callable[[Any], Any]) -> None:
    """Run or resume a campaign under a progress view, then print its result."""
    from autosft import report

    console = report.make_console()
    previous = _stop_on_signals()
    try:
        with report.follow(console) as follower:
            start(follower)
    except KeyboardInterrupt as stop:
        _say_stopped(folder)
        # Typer would turn every interrupt into the same code.
        raise typer.Exit(TERMINATED if isinstance(stop, _Terminated) else INTERRUPTED) from None
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    report.show_status(console, meta.views.status(folder))
    console.print()
    report.show_rounds(console, meta.views.rounds(folder))


def _stop_on_signals() -> dict[int, Any]:
    """Let SIGTERM and a closed terminal stop a campaign as Ctrl-C does; return the handlers they had."""
    previous: dict[int, Any] = {}
    for number in (signal.SIGTERM, signal.SIGHUP):
        # Under nohup a closed terminal is to be ignored.
        if signal.getsignal(number) is not signal.SIG_IGN:
            previous[number] = signal.signal(number, _terminate)
    return previous


def _terminate(number: int, frame: FrameType | None) -> None:
    raise _Terminated


def _say_stopped(folder: Path) -> None:
    again = shlex.join([PROGRAM, *sys.argv[1:]])
    runs = "Running jobs were ended"
    if (folder / "jobs" / "queue.sqlite").exists():
        runs = f"Its jobs go on (`{shlex.join([PROGRAM, 'jobs', str(folder)])}`)"
    typer.echo(
        f"\nStopped. {runs}; finished stages are kept in {folder} and are not repeated.\n"
        f"Go on with the same command:  {again}\n"
        f"or:                           {shlex.join([PROGRAM, 'resume', str(folder)])}",
        err=True,
    )
