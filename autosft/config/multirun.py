"""Several campaigns from one command, in Hydra's own notation: `lab.seed=0,1`, `lab.seed=range(0,4)`."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from autosft.errors import ConfigError

_NAME_CHARS = 80


def expand(overrides: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return the campaigns that a sweep stands for: every combination of its values.

    Args:
        overrides: As for `load_config`; a value may be a comma-separated choice, `choice(...)`, `range(...)`
            or `glob(...)`. A list that is one value stands in brackets: `campaign.seeds=[0,1]`.

    Returns:
        (name of a folder, overrides) of each campaign.

    Raises:
        ConfigError: No value is swept, or Hydra cannot read one that is.
    """
    choices = [_choices(override) for override in overrides]
    if all(len(values) == 1 for values in choices):
        raise ConfigError(
            "no setting has several values",
            where="--multirun",
            hint="e.g. lab.seed=0,1 or lab.seed=range(0,4)",
        )
    swept = [place for place, values in enumerate(choices) if len(values) > 1]
    found = []
    for number, combination in enumerate(itertools.product(*choices)):
        label = ",".join(combination[place] for place in swept)
        name = f"{number}-{re.sub(r'[^A-Za-z0-9=.,_-]+', '_', label)[:_NAME_CHARS]}"
        found.append((name, list(combination)))
    return found


def _choices(override: str) -> list[str]:
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    try:
        parsed = OverridesParser.create().parse_override(override)
        if not parsed.is_sweep_override():
            return [override]
        values = list(parsed.sweep_string_iterator())
    except HydraException as error:
        if "," not in override and "(" not in override:
            return [override]  # a path with spaces and the like, which `load_config` reads
        text = " ".join(str(error).split())[:200]
        raise ConfigError(f"not a sweep: {text}", where=override, hint="quote text: key='a,b'") from None
    return [f"{override.partition('=')[0]}={value}" for value in values]
