"""Entry point: run one command, turn every error into one line and an exit code."""

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
from typing import Annotated

import typer

from autosft.cli import ablate, estimate, evaluate, jobs, llm, operate, read, run, share
from autosft.cli.shared import PROGRAM, app
from autosft.errors import AutosftError

run.register(app)
ablate.register(app)
read.register(app)
operate.register(app)
share.register(app)
evaluate.register(app)
estimate.register(app)
llm.register(app)
jobs.register(app)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Show the version or, without a command, the help."""
    if version:
        from importlib.metadata import version as installed

        typer.echo(f"{PROGRAM} {installed(PROGRAM)}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


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
        result = typer.main.get_command(app).main(args=list(argv), prog_name=PROGRAM, standalone_mode=False)
        sys.stdout.flush()
    except AutosftError as error:
        return _fail(str(error), 2)
    except TyperException as error:
        return _fail(f"{error.format_message()} (see `{PROGRAM} --help`)", 2)
    except (KeyboardInterrupt, typer.Abort):
        return 128 + signal.SIGINT
    except BrokenPipeError:
        # The reader (`| head`) has left; Python would complain once more while it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        log = _save_traceback(argv)
        return _fail(f"unexpected {type(error).__name__}: {error} (traceback in {log})", 1)
    return result if isinstance(result, int) else 0


def _fail(message: str, code: int) -> int:
    from autosft.report.text import clean, redact

    typer.echo(f"{PROGRAM}: {clean(redact(message))}", err=True)
    return code


def _save_traceback(argv: Sequence[str]) -> str:
    """Write the current traceback to a new file, without secrets; return its path."""
    from autosft.report.text import redact

    stamp = time.strftime("%Y%m%d-%H%M%S")
    text = redact(f"{PROGRAM} {shlex.join(argv)}\n\n{traceback.format_exc()}")
    handle, path = tempfile.mkstemp(prefix=f"{PROGRAM}-{stamp}-", suffix=".log", text=True)
    with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as stream:
        stream.write(text)
    return path
