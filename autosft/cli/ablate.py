"""The command `ablate`: a sweep from one command, continued by the same command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from autosft.cli.shared import JsonOption
from autosft.errors import ConfigError


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(ablate)


def ablate(
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Settings that all campaigns share."),
    ] = None,
    kind: Annotated[
        str, typer.Option("--kind", metavar="KIND", help="additive, leave-one-out, families or sources.")
    ] = "additive",
    seeds: Annotated[str, typer.Option("--seeds", metavar="LIST", help="Campaign seeds.")] = "0,1,2",
    only: Annotated[
        str, typer.Option("--only", metavar="LIST", help="Names of the variants wanted; default: all.")
    ] = "",
    jobs: Annotated[
        int | None, typer.Option("--jobs", metavar="N", min=1, help="Campaigns side by side.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder; default runs/ablate-KIND.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run campaigns that differ in components, action families or sources of rows alone, and compare them.

    The same command goes on where it was stopped. Tables and one HTML page are written into the folder.
    """
    from autosft import report
    from autosft.config import load_config
    from autosft.meta.ablate import run_sweep
    from autosft.meta.designs import plan
    from autosft.meta.views_sweep import sweep_report

    config = load_config(overrides or [])
    folder = (out or Path("runs") / f"ablate-{kind}").expanduser().absolute()
    wanted = [name.strip() for name in only.split(",") if name.strip()]
    cells = plan(config, kind, _numbers(seeds), folder, wanted)
    failed = run_sweep(
        cells, kind, folder, jobs=jobs, on_event=lambda event: typer.echo(report.clean(event.text), err=True)
    )
    view = sweep_report(folder)
    paths = report.write_sweep(view, folder)
    if as_json:
        report.print_json(view)
    else:
        typer.echo(report.sweep_markdown(view))
        typer.echo("\n".join(str(path) for path in paths))
    broken = {name: why for name, why in failed.items() if why}
    for name, why in broken.items():
        typer.echo(f"failed: {name}: {report.clean(why)}", err=True)
    if broken:
        raise typer.Exit(1)


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise ConfigError(f"cannot be {text!r}", where="--seeds", hint="whole numbers, e.g. 0,1,2") from None
