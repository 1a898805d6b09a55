"""What tokens cost: a versioned table; an unknown model is an error unless the operator sets a price."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from autosft.config import SpendSettings
from autosft.errors import ConfigError, SpendCapError
from autosft.llm.chat import Usage

TABLE = Path(__file__).with_name("prices.yaml")
# What may follow a listed name and still be the same model: a date or `latest`, never another size.
_SUFFIX = re.compile(r"(-\d{4}-\d{2}-\d{2}|-\d{8}|-latest)?$")


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars a million tokens."""

    input: float
    cached: float
    cache_write: float
    output: float

    def usd(self, usage: Usage) -> float:
        """Return what a call's tokens cost."""
        return (
            usage.input_tokens * self.input
            + usage.cached_tokens * self.cached
            + usage.cache_write_tokens * self.cache_write
            + usage.output_tokens * self.output
        ) / 1e6

    def most_usd(self, input_tokens: int, output_tokens: int) -> float:
        """Return the most that so many tokens can cost."""
        return (
            input_tokens * max(self.input, self.cached, self.cache_write) + output_tokens * self.output
        ) / 1e6


@dataclass(frozen=True, slots=True)
class Prices:
    """The price table and the operator's price for what it lacks."""

    version: int
    models: Mapping[str, Price]
    otherwise: Price | None = None

    def of(self, model: str) -> Price:
        """Return a model's price.

        Raises:
            SpendCapError: The table does not list it and no price is set (I9).
        """
        name = model.rsplit("/", 1)[-1]
        found = self.models.get(_SUFFIX.sub("", name))
        if found is not None:
            return found
        if self.otherwise is not None:
            return self.otherwise
        raise SpendCapError(
            f"the price of model {model!r} is unknown",
            where=f"price table version {self.version}",
            hint="set spend.input_usd_per_mtok and spend.output_usd_per_mtok; 0 for a server of your own",
        )


def load_prices(settings: SpendSettings, table: Path = TABLE) -> Prices:
    """Read the price table.

    Raises:
        ConfigError: Only one of the two prices is set, or the table is damaged.
    """
    import yaml  # type: ignore[import-untyped]

    given = (settings.input_usd_per_mtok, settings.output_usd_per_mtok)
    if (given[0] is None) != (given[1] is None):
        raise ConfigError(
            "only one of two prices is set",
            where="spend.input_usd_per_mtok, spend.output_usd_per_mtok",
            hint="set both",
        )
    otherwise = None
    if given[0] is not None and given[1] is not None:
        otherwise = Price(given[0], given[0], given[0], given[1])
    try:
        data = yaml.safe_load(table.read_text(encoding="utf-8"))
        models = {str(name): Price(**prices) for name, prices in data["models"].items()}
        return Prices(int(data["version"]), models, otherwise)
    except (OSError, yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"the price table cannot be read ({error})", where=str(table)) from None
