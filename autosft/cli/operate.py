"""An operator's commands: `invalidate`, `revisit`, `approve`, `reject`, `pause`, `resume`, `build`."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from autosft.cli.shared import PROGRAM, Folder, JsonOption, existing, show
from autosft.errors import ConfigError

RoundArgument = Annotated[int, typer.Argument(metavar="ROUND", min=0, help="Round number.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    for command in (invalidate, revisit, build, approve, reject, pause, resume):
        app.command()(command)


def invalidate(
    folder: Folder,
    number: RoundArgument,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why it does not count.")],
    as_json: JsonOption = False,
) -> None:
    """Mark a round, and all that descend from it, as not counting."""
    from autosft.meta.operate import invalidate as decide

    def say(console: Any, done: Mapping[str, Any]) -> None:
        others = [r for r in done["invalidated"] if r != str(number)]
        also = f"; nor do rounds {', '.join(others)}" if others else ""
        console.print(f"Round {number} no longer counts{also}.")
        console.print(f"Incumbent: round {done['incumbent']}. Claimed best: round {done['claimed_best']}.")

    show(decide(existing(folder), number, reason), as_json, say)


def revisit(folder: Folder, number: RoundArgument, as_json: JsonOption = False) -> None:
    """Let the next round start from an earlier one."""
    from autosft.meta.operate import revisit as decide

    def say(console: Any, done: Mapping[str, Any]) -> None:
        console.print(f"Round {done['next_round']} will start from round {done['parent']}.")
        console.print(f"Go on with `{PROGRAM} run`; raise campaign.rounds if all rounds are done.")

    show(decide(existing(folder), number), as_json, say)


def approve(
    folder: Folder,
    by: Annotated[str, typer.Option(metavar="NAME", help="Who says so.")] = "operator",
    as_json: JsonOption = False,
) -> None:
    """Approve the decision that a campaign with campaign.approve=true waits with."""
    from autosft.meta.approval import judge

    def say(console: Any, done: Mapping[str, Any]) -> None:
        console.print(f"Round {done['round']}: approved.")

    show(judge(existing(folder), approve=True, by=by), as_json, say)


def reject(
    folder: Folder,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why.")],
    by: Annotated[str, typer.Option(metavar="NAME", help="Who says so.")] = "operator",
    as_json: JsonOption = False,
) -> None:
    """Reject it; the round is decided anew among the proposals that are left."""
    from autosft.meta.approval import judge

    def say(console: Any, done: Mapping[str, Any]) -> None:
        console.print(f"Round {done['round']}: rejected; it is decided anew.")

    show(judge(existing(folder), approve=False, reason=reason, by=by), as_json, say)


def pause(folder: Folder) -> None:
    """Let a running campaign wait before its next step."""
    from autosft.meta.approval import hold

    hold(existing(folder))
    typer.echo(f"It waits after the step it is in; `{PROGRAM} resume` lets it go on.")


def resume(folder: Folder) -> None:
    """Let a paused campaign go on."""
    from autosft.meta.approval import release

    typer.echo("It goes on." if release(existing(folder)) else "It was not paused.")


def build(
    recipe: Annotated[
        Path, typer.Argument(metavar="RECIPE.json", help="A recipe, or the receipt.json of a build.")
    ],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Settings besides --pool and --model; not with --campaign."),
    ] = None,
    campaign: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Take pool, base, suites and settings from it.")
    ] = None,
    pool: Annotated[Path | None, typer.Option(metavar="PATH", help="Rows; default: the lab's.")] = None,
    model: Annotated[Path | None, typer.Option(metavar="PATH", help="Base; default: the lab's.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the build here; else it is only checked.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Build a recipe again, bit for bit, and print its receipt."""
    from autosft.meta.rebuild import build_alone, read_recipe, rebuild
    from autosft.report import show_build

    wanted = [f"{key}.path={path}" for key, path in (("pool", pool), ("model", model)) if path is not None]
    wanted += overrides or []
    if campaign is not None and wanted:
        raise ConfigError(
            "a campaign brings its own pool, base and settings",
            where="--campaign",
            hint="leave the others out",
        )
    read = read_recipe(recipe)
    with tempfile.TemporaryDirectory(prefix=f"{PROGRAM}-build-") as scratch:
        place = out or Path(scratch)
        if campaign is not None:
            done = rebuild(read, existing(campaign), place)
        else:
            done = build_alone(read, wanted, place)
    show({**done, "path": done["path"] if out is not None else None}, as_json, show_build)
