"""Commands of the environment: `jobs`, and the verbs `job`, `eval`, `data`, `artifact`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autosft.cli.shared import JsonOption, existing, show

if TYPE_CHECKING:
    from autosft.executor.jobs import JobQueue, JobRecord
    from autosft.meta.environment import Environment

Place = Annotated[Path, typer.Argument(metavar="DIR", help="A campaign's folder, or any environment's.")]
NewPlace = Annotated[
    Path, typer.Argument(metavar="DIR", help="A campaign's folder, or any other; made if new.")
]
FOLLOW_S = 0.5
LOG_CHARS = 4_000


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command()(jobs)
    app.command("job")(train)
    app.command("eval")(evaluate)
    app.command("data")(import_data)
    artifact = typer.Typer(help="Store, fetch, hand in: checkpoints and other files by their content.")
    for command in (artifact_store, artifact_fetch, artifact_submit, artifact_list):
        artifact.command(command.__name__.removeprefix("artifact_"))(command)
    app.add_typer(artifact, name="artifact")


def jobs(
    folder: Place,
    name: Annotated[str | None, typer.Argument(metavar="JOB", help="An id or its beginning.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Print the log until the job ends.")] = False,
    cancel: Annotated[bool, typer.Option("--cancel", help="End the job.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List the jobs of a folder; show, follow or cancel one."""
    from autosft.errors import ConfigError
    from autosft.meta.environment import Environment

    queue = Environment(existing(folder)).queue
    if name is None:
        if follow or cancel:
            raise ConfigError("which job?", where="JOB", hint="`autosft jobs DIR` lists them")
        show([record.to_json() for record in queue.jobs()], as_json, _say_jobs)
        return
    record = queue.cancel(name) if cancel else queue.get(name)
    if follow:
        record = _follow(queue, record)
        raise typer.Exit(0 if record.state == "done" else 1)
    text, _ = queue.read_log(record.id)
    view = {**record.to_json(), "log": text}
    show(view, as_json, _say_job)


def _follow(queue: JobQueue, record: JobRecord) -> JobRecord:
    from autosft.executor.jobs import ACTIVE
    from autosft.report import clean

    offset, rest = 0, ""
    while True:
        record = queue.get(record.id)
        text, offset = queue.read_log(record.id, offset)
        over = record.state not in ACTIVE and not text
        *lines, rest = (rest + text).split("\n")
        for line in [*lines, rest] if over and rest else lines:
            typer.echo(clean(line))
        if over:
            typer.echo(f"{record.state}{': ' + clean(record.cause) if record.cause else ''}", err=True)
            return record
        queue.ensure_runner()
        time.sleep(FOLLOW_S)


def _say_jobs(console: Any, rows: list[dict[str, Any]]) -> None:
    from rich.table import Table

    from autosft.report import clean

    if not rows:
        console.print("No jobs.")
        return
    table = Table(box=None)
    for name in ("job", "kind", "state", "what", "devices", "attempts", "submitted", "took", "cause"):
        table.add_column(name, justify="right" if name in ("devices", "attempts", "took") else "left")
    for row in rows:
        end = row["ended"] or time.time()
        took = "-" if row["started"] is None else f"{end - row['started']:.0f} s"
        when = time.strftime("%m-%d %H:%M:%S", time.localtime(row["submitted"]))
        cells = (row["id"], row["kind"], row["state"], row["label"], row["devices"], row["attempts"],
                 when, took, row["cause"] or "-")  # fmt: skip
        table.add_row(*(clean(str(cell)) for cell in cells))
    console.print(table)


def _say_job(console: Any, view: dict[str, Any]) -> None:
    from autosft.report import clean

    _say_jobs(console, [view])
    for line in view["log"][-LOG_CHARS:].splitlines():
        console.print(clean(line), markup=False, highlight=False)


def train(
    folder: Place,
    build: Annotated[str, typer.Argument(metavar="BUILD", help="Id of a build of the campaign.")],
    seed: Annotated[int, typer.Option(help="Training seed; the build must have a plan for it.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Train, generate and score a build as a job; prints the job's id at once."""
    environment = _environment(existing(folder))
    _answer(environment, environment.train(build, seed), as_json)


def evaluate(
    folder: NewPlace,
    checkpoint: Annotated[Path, typer.Argument(metavar="CHECKPOINT", help="Hugging Face model folder.")],
    suite: Annotated[
        str, typer.Option("--suite", metavar="NAMES", help="Suites, comma-separated.")
    ] = "ifeval",
    samples: Annotated[int | None, typer.Option(metavar="K", help="Answers an item (avg@k).")] = None,
    temperature: Annotated[float | None, typer.Option(metavar="T", help="0 is greedy.")] = None,
    max_new_tokens: Annotated[int | None, typer.Option(metavar="N", help="Longest answer.")] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", help="Only the first N items a suite.")] = None,
    seed: Annotated[int, typer.Option(help="Decides sampling.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Evaluate a checkpoint as a job (see `evaluate`); prints the job's id at once."""
    given = {"--samples": samples, "--temperature": temperature, "--max-new-tokens": max_new_tokens,
             "--limit": limit, "--seed": seed}  # fmt: skip
    options = [part for name, value in given.items() if value is not None for part in (name, str(value))]
    environment = _environment(folder)
    _answer(environment, environment.evaluate(checkpoint, _names(suite), options), as_json)


def import_data(
    folder: NewPlace,
    files: Annotated[list[Path], typer.Argument(metavar="FILES", help="Files or folders of rows.")],
    against: Annotated[str, typer.Option("--against", metavar="NAMES", help="Suites, comma-separated.")] = "",
    rule: Annotated[str, typer.Option(help="half, any13 or any8.")] = "half",
    as_json: JsonOption = False,
) -> None:
    """Import rows as a job, without those that hold evaluation text; prints the job's id at once."""
    environment = _environment(folder)
    _answer(environment, environment.import_data(files, _names(against), ["--rule", rule]), as_json)


def artifact_store(
    folder: NewPlace, path: Annotated[Path, typer.Argument(metavar="PATH", help="A file or folder.")]
) -> None:
    """Store a file or folder by its content; prints its id."""
    typer.echo(_environment(folder).keep(path))


def artifact_fetch(
    folder: Place,
    name: Annotated[str, typer.Argument(metavar="ID", help="An id or its beginning.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A new folder.")],
) -> None:
    """Copy a stored artifact into a new folder, its hashes checked."""
    typer.echo(str(_environment(existing(folder)).fetch(name, out)))


def artifact_submit(
    folder: Place,
    name: Annotated[str, typer.Argument(metavar="ID", help="An id or its beginning.")],
    note: Annotated[str, typer.Option(help="For the record.")] = "",
) -> None:
    """Hand in a stored checkpoint as the environment's answer; the last one counts."""
    typer.echo(_environment(existing(folder)).submit(name, note))


def artifact_list(folder: Place, as_json: JsonOption = False) -> None:
    """List what is stored."""
    show(_environment(existing(folder)).artifacts(), as_json, _say_artifacts)


def _say_artifacts(console: Any, rows: list[dict[str, Any]]) -> None:
    from autosft.report import clean

    for row in rows:
        handed = "  handed in" if row["submitted"] else ""
        console.print(f"{row['id']}  {clean(row['name'])}  {row['files']} files{handed}", markup=False)
    if not rows:
        console.print("Nothing is stored.")


def _environment(folder: Path) -> Environment:
    from autosft.meta.environment import Environment

    return Environment(folder)


def _answer(environment: Environment, name: str, as_json: bool) -> None:
    if as_json:
        from autosft.report import print_json

        print_json(environment.queue.get(name).to_json())
        return
    typer.echo(name)
    typer.echo("submitted; `autosft jobs DIR` shows how it stands", err=True)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
