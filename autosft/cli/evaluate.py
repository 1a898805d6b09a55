"""Commands of evaluation: `evaluate`, `decontaminate`, `holdout seal`, `holdout score`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autosft.cli.shared import JsonOption, show
from autosft.errors import ConfigError, SuiteError

if TYPE_CHECKING:
    from autosft.types import Event


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command()(evaluate)


def evaluate(
    checkpoint: Annotated[Path, typer.Argument(metavar="CHECKPOINT", help="Hugging Face model folder.")],
    suite: Annotated[
        str,
        typer.Option("--suite", metavar="NAMES", help="Suites, comma-separated; a .jsonl file is one too."),
    ] = "ifeval",
    data: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="File of the suite, or folder of suites; default $AUTOSFT_DATA."),
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Default runs/eval/<name>-<id>.")] = None,
    samples: Annotated[int | None, typer.Option(metavar="K", help="Answers an item (avg@k).")] = None,
    temperature: Annotated[float | None, typer.Option(metavar="T", help="0 is greedy.")] = None,
    max_new_tokens: Annotated[int | None, typer.Option(metavar="N", help="Longest answer.")] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", help="Only the first N items a suite.")] = None,
    batch: Annotated[int, typer.Option(metavar="N", help="Answers side by side.")] = 64,
    seed: Annotated[int, typer.Option(help="Decides sampling.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Evaluate a checkpoint on suites; the same command goes on where it stopped."""
    from autosft import report
    from autosft.executor.base import base_fingerprint
    from autosft.executor.evaluate import evaluate as run
    from autosft.executor.evaluate import protocol_of

    names = [name.strip() for name in suite.split(",") if name.strip()]
    suites = [_load(name, data, limit, alone=len(names) == 1) for name in names]
    settings = {
        s.name: protocol_of(
            s.name, samples=samples, max_new_tokens=max_new_tokens, temperature=temperature, batch_size=batch
        )
        for s in suites
    }
    folder = out or Path("runs/eval") / f"{checkpoint.resolve().name}-{base_fingerprint(checkpoint)[:8]}"
    result = run(checkpoint, suites, folder, settings=settings, seed=seed, on_event=_say)
    show(result, as_json, report.show_evaluation)


def _say(event: Event) -> None:
    """Print a stage on standard error, so that results can be piped."""
    if event.kind == "stage":
        typer.echo(event.text, err=True)


def _load(name: str, data: Path | None, limit: int | None, *, alone: bool) -> Any:
    """Load a suite by name, or from a JSONL file of one's own."""
    from autosft.evals import SUITES, Suite, load_suite

    if name.endswith(".jsonl"):
        suite = load_suite("jsonl", path=name)
    elif name == "lab":
        suite = load_suite("lab")
    elif name in SUITES and name != "jsonl":
        path = data
        if data is not None and data.is_file() and not alone:
            raise ConfigError("one file cannot hold several suites", where="--data", hint="give their folder")
        return load_suite(name, path=path, limit=limit)
    else:
        return load_suite(name)
    if limit is not None and limit < 1:
        raise SuiteError(f"limit {limit} is below 1", where=f"suite {suite.name}")
    return Suite(suite.name, suite.items[:limit])
