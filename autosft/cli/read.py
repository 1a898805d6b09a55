"""Commands that only read: they work on a running or finished campaign and write nothing into it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from autosft import meta
from autosft.cli.shared import Folder, FolderArgument, JsonOption, existing, show


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    commands = (status, rounds, taxonomy, actions, hypotheses, lineage, diff, report, catalogue, doctor)
    for command in commands:
        app.command()(command)


def status(folder: FolderArgument = None, as_json: JsonOption = False) -> None:
    """Show where a campaign stands."""
    from autosft.report import show_status

    show(meta.views.status(existing(folder)), as_json, show_status)


def rounds(folder: FolderArgument = None, as_json: JsonOption = False) -> None:
    """Show rounds: score, interval, actions, verdict."""
    from autosft.report import show_rounds

    show(meta.views.rounds(existing(folder)), as_json, show_rounds)


def taxonomy(
    folder: FolderArgument = None,
    number: Annotated[
        int | None, typer.Option("--round", metavar="N", min=0, help="Default: the incumbent.")
    ] = None,
    leaf: Annotated[
        str | None,
        typer.Option("--leaf", metavar="NAME", help="One leaf over all rounds, and what moved it."),
    ] = None,
    tree: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="A tree itself: default, lab, ifeval, ifbench, mbpp_plus, or a file."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show leaves: score, change, supply in the pool; or the leaves of a tree and what they require."""
    from autosft.report import show_leaf, show_taxonomy, show_tree

    if tree is not None:
        from autosft.taxonomy import Taxonomy

        show(Taxonomy.load(tree).to_json(), as_json, show_tree)
        return

    if leaf is not None:
        show(meta.views.leaf_history(existing(folder), leaf), as_json, show_leaf)
        return

    show(meta.views.taxonomy(existing(folder), round=number), as_json, show_taxonomy)


def actions(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="DIR...", help="Campaign folders, side by side; default runs/lab."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what each applied action did to the pool, or the families of several campaigns side by side."""
    from autosft.report import show_actions, show_histogram

    if folders and len(folders) > 1:
        names = [str(existing(folder)) for folder in folders]
        view = {"campaigns": names, "rounds": meta.views.histogram(folders)}
        show(view, as_json, show_histogram)
        return
    folder = folders[0] if folders else None
    show(meta.views.actions(existing(folder)), as_json, show_actions)


def hypotheses(folder: FolderArgument = None, as_json: JsonOption = False) -> None:
    """Show each round's hypothesis: predicted against measured, and its outcome."""
    from autosft.meta.views_memory import hypotheses as view
    from autosft.report import show_hypotheses

    show(view(existing(folder)), as_json, show_hypotheses)


def lineage(folder: FolderArgument = None, as_json: JsonOption = False) -> None:
    """Show the tree of rounds: parents, arms of revisions, invalidated ones."""
    from autosft.meta.views_memory import lineage as view
    from autosft.report import show_lineage

    show(view(existing(folder)), as_json, show_lineage)


def diff(
    folder: Folder,
    a: Annotated[int, typer.Argument(metavar="A", min=0, help="Round to compare with.")],
    b: Annotated[int, typer.Argument(metavar="B", min=0, help="Round to describe.")],
    samples: Annotated[int, typer.Option(metavar="N", min=0, help="Rows shown of each kind.")] = 3,
    as_json: JsonOption = False,
) -> None:
    """Show what differs between two rounds: recipes and rows."""
    from autosft.meta.views_diff import diff as view
    from autosft.report import show_diff

    show(view(existing(folder), a, b, samples=samples), as_json, show_diff)


def report(
    folder: FolderArgument = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Default: report-NAME.html, here.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write one self-contained HTML file about a campaign."""
    from autosft.meta.views_report import campaign_report
    from autosft.report import print_json, write_page

    view = campaign_report(existing(folder))
    if as_json:
        print_json(view)
        return
    path = write_page(view, out or Path(f"report-{view['status']['campaign']}.html"))
    typer.echo(f"{path}  ({path.stat().st_size / 1024:.0f} KiB)")


def catalogue(as_json: JsonOption = False) -> None:
    """Show all data actions with their parameters and an example."""
    from autosft.actions.catalogue import catalogue as view
    from autosft.report import show_catalogue

    show(view(), as_json, show_catalogue)


def doctor(
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="Campaign folder; none: the installation only.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check the installation and a campaign; each row that fails names its fix."""
    from autosft.meta.doctor import doctor as view
    from autosft.report import show_doctor

    rows = view(existing(folder) if folder is not None else None)
    show(rows, as_json, show_doctor)
    if any(row["state"] == "fail" for row in rows):
        raise typer.Exit(1)
