"""Commands of evaluation: `evaluate`, `decontaminate`, `holdout seal`, `holdout score`."""

from __future__ import annotations

from collections.abc import Mapping
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
    app.command()(decontaminate)
    holdout = typer.Typer(help="Seal a suite before a campaign; score it once after its end.")
    holdout.command("seal")(holdout_seal)
    holdout.command("score")(holdout_score)
    app.add_typer(holdout, name="holdout")


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


def decontaminate(
    files: Annotated[list[Path], typer.Argument(metavar="FILES", help="Files or folders of rows.")],
    against: Annotated[
        str, typer.Option("--against", metavar="NAMES", help="Suites, comma-separated, or .jsonl files.")
    ] = "",
    sealed: Annotated[
        list[Path] | None, typer.Option(metavar="DIR", help="Sealed suites; their hits are one total.")
    ] = None,
    data: Annotated[Path | None, typer.Option(metavar="PATH", help="Folder of suites.")] = None,
    rule: Annotated[str, typer.Option(help="half, any13 or any8.")] = "half",
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the clean rows here, one parquet a file.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Look for evaluation text in files of rows; report what was hit where."""
    from autosft.actions.contamination import RULES, look_for, sealed_indexes
    from autosft.evals import read_seal
    from autosft.pool import read_pool, write_pool
    from autosft.report.evaluation import show_contamination

    if rule not in RULES:
        raise ConfigError(f"no rule {rule!r}", where="--rule", hint=f"one of {', '.join(RULES)}")
    names = [name.strip() for name in against.split(",") if name.strip()]
    if not names and not sealed:
        raise ConfigError(
            "nothing to compare with", where="--against", hint="e.g. --against ifeval,mbpp_plus"
        )
    suites = [_load(name, data, None, alone=len(names) == 1) for name in names]
    pools = [(str(path), read_pool(path)[0]) for path in files]
    indexes = sealed_indexes(read_seal(folder).digests for folder in sealed or [])
    report = look_for(pools, suites, rule=rule, sealed=indexes)
    written = []
    for (path, pool), mask in zip(pools, report.clean, strict=True):
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            target = out / f"{Path(path).name.split('.')[0]}.parquet"
            write_pool(pool.keep(mask), target)
            written.append(str(target))
    show({**report.to_json(), "written": written}, as_json, show_contamination)


def holdout_seal(
    campaign: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a campaign yet to start.")],
    suite: Annotated[
        str, typer.Option("--suite", metavar="NAME", help="Suite, or a .jsonl file.")
    ] = "ifbench",
    dev: Annotated[str, typer.Option(metavar="NAMES", help="Suites that will guide it.")] = "",
    data: Annotated[Path | None, typer.Option(metavar="PATH", help="File or folder of suites.")] = None,
    half: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Seal every second item only; write the others to FILE as a dev suite."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Seal a suite for a campaign; agents get hashed n-grams of it, nothing else."""
    from autosft.evals.suites.halves import halves, write_suite
    from autosft.meta.holdout import seal_suite

    whole = _load(suite, data, None, alone=True)
    others = [_load(name.strip(), data, None, alone=False) for name in dev.split(",") if name.strip()]
    if half is not None:
        kept, whole = halves(whole)
        others.append(kept)
    sealed = seal_suite(campaign, whole, others)
    if half is not None:
        write_suite(kept, half)

    def say(console: Any, done: Mapping[str, Any]) -> None:
        console.print(f"Sealed {done['n_items']} items in {done['folder']}.")
        console.print(f"After the campaign's end, `autosft holdout score {campaign}` scores them once.")

    show(sealed, as_json, say)


def holdout_score(
    campaign: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a finished campaign.")],
    as_json: JsonOption = False,
) -> None:
    """Score the claimed best on the sealed suite, once; the campaign is closed by it."""
    from autosft.meta.holdout import score_holdout
    from autosft.report.evaluation import show_holdout

    show(score_holdout(campaign, _say), as_json, show_holdout)
