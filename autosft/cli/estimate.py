"""The command `estimate`: what a training run will take, computed before anything is started."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from autosft.cli.shared import JsonOption
from autosft.errors import ConfigError


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(estimate)


def estimate(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="The base's folder; its config.json is enough.")
    ],
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Settings, e.g. trainer=PRESET.")
    ] = None,
    tokens: Annotated[int | None, typer.Option(metavar="N", min=1, help="Training tokens of a run.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Compute memory and hours of a Megatron run; nothing is started or measured."""
    from autosft.config import load_config
    from autosft.executor.train.megatron.cost import plan_cost
    from autosft.report import print_json

    if "=" in str(model):
        raise ConfigError("the first argument is the base's folder", where=str(model))
    config = load_config(overrides or [])
    file = model / "config.json" if model.is_dir() else model
    cost = plan_cost(file, config.trainer, tokens or config.campaign.budget_tokens)
    if as_json:
        print_json(cost.to_json())
    else:
        typer.echo("\n".join(cost.lines()))
