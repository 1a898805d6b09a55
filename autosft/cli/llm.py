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

    table = Table(box=None)
    for name in ("round", "role", "calls", "read", "what was read", "written", "fill", "compacted", "cached"):
        table.add_column(name, justify="left" if name in ("role", "what was read") else "right")
    for row in view["context"]:
        read = max(1, row["input_tokens"])
        kinds = sorted(KINDS, key=lambda kind: -row[kind])
        parts = [
            f"{kind.replace('_', ' ')} {row[kind] / read:.0%}" for kind in kinds if row[kind] / read >= 0.01
        ]
        cells = (row["round"], row["role"], row["calls"], f"{row['input_tokens']:,}", ", ".join(parts),
                 f"{row['output_tokens']:,}", "-" if row["fill"] is None else f"{row['fill']:.0%}",
                 row["compactions"], f"{row['cached_frac']:.0%}")  # fmt: skip
        table.add_row(*map(str, cells))
    console.print(table)
    for purpose, found in view["calls"].items():
        console.print(f"{purpose}: {found['calls']} calls, {found['share']:.0%}")
    for scope, kinds in view["spend"].items():
        console.print(f"{scope}: ${kinds.get('usd', 0):.4f}, {kinds.get('llm_tokens', 0):,.0f} tokens")
