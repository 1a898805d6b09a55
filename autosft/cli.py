"""The `autosft` command: thin. It loads settings, calls the library, and prints what the views return.

Exit codes: 0 done; 1 an unexpected fault (a log with its traceback is named); 2 wrong use or a refused step;
130 stopped by Ctrl-C, 143 by SIGTERM or a closed terminal.
"""

from __future__ import annotations

import io
import os
import shlex
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer

from autosft.errors import AutosftError, CampaignError

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Research supervised fine-tuning data in rounds: propose, retrain the same base on an equal token "
    "budget, measure, decide.",
)
DEFAULT_FOLDER = Path("runs/lab")
_INTERRUPTED = 128 + signal.SIGINT
_TERMINATED = 128 + signal.SIGTERM
_PROGRAM = "autosft"

FolderArgument = Annotated[
    Path | None, typer.Argument(metavar="DIR", help="Campaign folder; default runs/lab.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


class _Terminated(KeyboardInterrupt):
    """Stops as Ctrl-C does, with its own exit code."""


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Show the version or, without a command, the help."""
    if version:
        from importlib.metadata import version as installed

        typer.echo(f"{_PROGRAM} {installed(_PROGRAM)}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
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
) -> None:
    """Run a campaign or go on with it.

    A finished campaign is shown again; nothing is trained twice.
    """
    from autosft.config import load_config

    config = load_config(overrides or [])
    folder = out or Path(config.campaign.out or Path("runs") / config.campaign.name)
    _follow_campaign(folder, lambda on_event: _meta().run_campaign(config, folder, on_event))


@app.command()
def resume(folder: Annotated[Path, typer.Argument(metavar="DIR", help="Campaign folder.")]) -> None:
    """Go on with the settings of the first start."""
    _existing(folder)
    _follow_campaign(folder, lambda on_event: _meta().resume_campaign(folder, on_event))


@app.command()
def status(folder: FolderArgument = None, as_json: JsonOption = False) -> None:
    """Show where a campaign stands."""
    from autosft import report

    folder = _existing(folder)
    _show(_views().status(folder), as_json, report.show_status)


@app.command()
def rounds(folder: FolderArgument = None, as_json: JsonOption = False) -> None:
    """Show rounds: score, interval, actions, verdict."""
    from autosft import report

    folder = _existing(folder)
    _show(_views().rounds(folder), as_json, report.show_rounds)


@app.command()
def taxonomy(
    folder: FolderArgument = None,
    number: Annotated[
        int | None, typer.Option("--round", metavar="N", min=0, help="Default: the incumbent.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show leaves: score, change, supply in the pool."""
    from autosft import report

    folder = _existing(folder)
    _show(_views().taxonomy(folder, round=number), as_json, report.show_taxonomy)


@app.command()
def actions(folder: FolderArgument = None, as_json: JsonOption = False) -> None:
    """Show what each applied action did to the pool."""
    from autosft import report

    folder = _existing(folder)
    _show(_views().actions(folder), as_json, report.show_actions)


@app.command()
def catalogue(as_json: JsonOption = False) -> None:
    """Show all data actions with their parameters."""
    from autosft import report
    from autosft.actions.catalogue import catalogue as list_actions

    _show(list_actions(), as_json, report.show_catalogue)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit; people never see a traceback."""
    sys.exit(run_command(sys.argv[1:] if argv is None else argv))


def run_command(argv: Sequence[str]) -> int:
    """Run one command and return its exit code.

    Args:
        argv: Arguments after the program's name.
    """
    from typer.exceptions import TyperException

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a letter is no reason to stop
    try:
        result = typer.main.get_command(app).main(args=list(argv), prog_name=_PROGRAM, standalone_mode=False)
        sys.stdout.flush()
    except AutosftError as error:
        return _fail(str(error), 2)
    except TyperException as error:
        return _fail(f"{error.format_message()} (see `{_PROGRAM} --help`)", 2)
    except (KeyboardInterrupt, typer.Abort):
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader (`| head`) has left; Python would complain once more while it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        log = _save_traceback(argv)
        return _fail(f"unexpected {type(error).__name__}: {error} (traceback in {log})", 1)
    return result if isinstance(result, int) else 0


def _follow_campaign(folder: Path, start: Any) -> None:
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
        raise typer.Exit(_TERMINATED if isinstance(stop, _Terminated) else _INTERRUPTED) from None
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    views = _views()
    report.show_status(console, views.status(folder))
    console.print()
    report.show_rounds(console, views.rounds(folder))


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
    again = shlex.join([_PROGRAM, *sys.argv[1:]])
    typer.echo(
        f"\nStopped. Running jobs were ended; finished stages are kept in {folder} and are not repeated.\n"
        f"Go on with the same command:  {again}\n"
        f"or:                           {shlex.join([_PROGRAM, 'resume', str(folder)])}",
        err=True,
    )


def _show(view: Any, as_json: bool, show: Any) -> None:
    from autosft import report

    if as_json:
        report.print_json(view)
    else:
        show(report.make_console(), view)


def _existing(folder: Path | None) -> Path:
    if folder is None:
        if not DEFAULT_FOLDER.is_dir():
            raise CampaignError(
                "no campaign folder given, and runs/lab does not exist here",
                hint="name one, e.g. `autosft status runs/NAME`",
            )
        return DEFAULT_FOLDER
    if not folder.is_dir():
        raise CampaignError(
            "no campaign folder", where=str(folder), hint="start one with `autosft run --out DIR`"
        )
    return folder


def _meta() -> Any:
    from autosft import meta

    return meta


def _views() -> Any:
    from autosft.meta import views

    return views


def _fail(message: str, code: int) -> int:
    from autosft.report.text import clean, redact

    typer.echo(f"{_PROGRAM}: {clean(redact(message))}", err=True)
    return code


def _save_traceback(argv: Sequence[str]) -> str:
    """Write the current traceback to a new file, without secrets; return its path."""
    from autosft.report.text import redact

    stamp = time.strftime("%Y%m%d-%H%M%S")
    text = redact(f"{_PROGRAM} {shlex.join(argv)}\n\n{traceback.format_exc()}")
    handle, path = tempfile.mkstemp(prefix=f"{_PROGRAM}-{stamp}-", suffix=".log", text=True)
    with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as stream:
        stream.write(text)
    return path


if __name__ == "__main__":
    main()
