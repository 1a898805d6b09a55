"""Commands beside campaigns: `cache`, `export`, `serve`, `track`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from autosft.cli.shared import Folder, JsonOption, existing, show


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    for command in (cache, export, serve, track):
        app.command()(command)


def cache(
    clean: Annotated[
        bool, typer.Option("--clean", help="Remove it; campaigns make anew what they need.")
    ] = False,
    keep_gb: Annotated[
        float | None,
        typer.Option("--keep-gb", metavar="GB", min=0, help="Remove what is over, oldest first."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show or clean the cache of encoded rows that campaigns share."""
    from autosft.engine.place import cache_folder
    from autosft.engine.ragged import sizes, trim

    place = cache_folder()
    room = 0.0 if clean else keep_gb
    removed = 0 if room is None else trim(place / "rows", int(room * 2**30))
    found = sizes(place / "rows")
    view = {
        "folder": str(place),
        "removed_bytes": removed,
        "bytes": sum(size for _, size in found.values()),
        "encoders": {name: {"files": files, "bytes": size} for name, (files, size) in found.items()},
    }

    def say(console: Any, done: Mapping[str, Any]) -> None:
        console.print(f"{done['folder']}: {done['bytes'] / 2**20:,.1f} MiB, {len(done['encoders'])} encoders")
        if room is not None:
            console.print(f"Removed {done['removed_bytes'] / 2**20:,.1f} MiB.")

    show(view, as_json, say)


def export(
    folder: Folder,
    to: Annotated[Path, typer.Argument(metavar="TO", help="New folder for the model.")],
    number: Annotated[
        int | None,
        typer.Option("--round", metavar="N", min=0, help="Default: the claimed best, else the incumbent."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="SEED", help="Training seed; default: the round's first.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Copy a checkpoint out of a campaign, with its model card and data card."""
    from autosft.meta.export import export_checkpoint
    from autosft.report.cards import write_cards

    view = export_checkpoint(existing(folder), to, number, seed)
    cards = write_cards(view, to)

    def say(console: Any, done: Mapping[str, Any]) -> None:
        claim = "the claimed best" if done["claimed"] else "no improvement is claimed for it"
        console.print(f"Round {done['round']}, seed {done['seed']} ({claim}): {to}")
        console.print(f"Cards: {', '.join(card.name for card in cards)}")

    shown = {key: view[key] for key in ("round", "seed", "claimed", "files")}
    show({**shown, "folder": str(to), "cards": [str(card) for card in cards]}, as_json, say)


def serve(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A campaign's folder, or one that holds campaigns.")
    ] = Path("runs"),
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Anything but loopback makes and prints a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="0: a free one.")] = 8765,
    name: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Further host names it is known by.")
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="No pausing, approving, invalidating.")
    ] = False,
) -> None:
    """Show campaigns in a browser, while they run and after."""
    from autosft.serve import run_server

    run_server(folder, host, port, acts=not read_only, names=tuple(name or ()), say=typer.echo)


def track(
    folder: Folder,
    uri: Annotated[
        str | None,
        typer.Option(metavar="URI", help="Tracking server or store; default: mlflow.db beside the campaign."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Send a campaign's rounds to MLflow, whatever it does not have yet."""
    from autosft.meta.track import track as send

    def say(console: Any, done: Mapping[str, Any]) -> None:
        console.print(f"{done['sent']} new runs, {done['runs']} in all: experiment {done['experiment']}")
        console.print(f"Look at them with `mlflow ui --backend-store-uri {done['uri']}`.")

    show(send(existing(folder), uri), as_json, say)
