"""What all commands share: the application they register with, their common options, folders, printing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from autosft.errors import CampaignError

PROGRAM = "autosft"
DEFAULT_FOLDER = Path("runs/lab")

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Research supervised fine-tuning data in rounds: propose, retrain the same base on an equal token "
    "budget, measure, decide.",
)

FolderArgument = Annotated[
    Path | None, typer.Argument(metavar="DIR", help="Campaign folder; default runs/lab.")
]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Campaign folder.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def show(view: Any, as_json: bool, printer: Any) -> None:
    """Print a view as JSON, or through its printer."""
    from autosft import report

    if as_json:
        report.print_json(view)
    else:
        printer(report.make_console(), view)


def existing(folder: Path | None) -> Path:
    """Return the campaign folder that is meant.

    Raises:
        CampaignError: There is no such folder.
    """
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
