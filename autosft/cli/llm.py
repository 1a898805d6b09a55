"""Commands about language-model agents: `replay` and `llm`."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from autosft.cli.shared import PROGRAM, Folder, JsonOption, existing, show


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command()(replay)
    app.command(name="llm")(agents)


def replay(
    folder: Folder,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep the replayed campaign here; else it is only checked."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run a finished campaign again, offline, from its recorded replies, and compare the records."""
    from autosft.meta.replay import replay as run_again

    with tempfile.TemporaryDirectory(prefix=f"{PROGRAM}-replay-") as scratch:
        found = run_again(existing(folder), (out or Path(scratch)) / folder.absolute().name)

    def say(console: Any, done: Mapping[str, Any]) -> None:
        if done["identical"]:
            console.print(
                f"Identical: {done['entries']} journal entries, {done['exchanges']} recorded replies."
            )
        else:
            console.print(f"Different from journal entry {done['first_difference']} on.")

    show(found, as_json, say)
    if not found["identical"]:
        raise typer.Exit(1)


def agents(folder: Folder, as_json: JsonOption = False) -> None:
    """Show what agents read, what calls were for, and where LLM spend went."""
    from autosft.memory.transcripts import call_shares, context_meter
    from autosft.meta.replay import window_of
    from autosft.spend import spend_by_scope

    place = existing(folder)
    view = {
        "context": context_meter(place, window_of(place)),
        "calls": call_shares(place),
        "spend": spend_by_scope(place),
    }
    show(view, as_json, _say_agents)


def _say_agents(console: Any, view: Mapping[str, Any]) -> None:
    from rich.table import Table

    from autosft.llm import KINDS

    shown = (
        "round",
        "role",
        "calls",
        "input_tokens",
        *KINDS,
        "output_tokens",
        "fill",
        "compactions",
        "cached_frac",
    )
    table = Table(box=None)
    for name in shown:
        table.add_column(name.replace("_", " "), justify="left" if name == "role" else "right")
    for row in view["context"]:
        cells = (row[name] for name in shown)
        table.add_row(*(f"{c:.2f}" if isinstance(c, float) else "-" if c is None else str(c) for c in cells))
    console.print(table)
    for purpose, found in view["calls"].items():
        console.print(f"{purpose}: {found['calls']} calls, {found['share']:.0%}")
    for scope, kinds in view["spend"].items():
        console.print(f"{scope}: ${kinds.get('usd', 0):.4f}, {kinds.get('llm_tokens', 0):,.0f} tokens")
