"""Settings that must fit together; each message names the keys and what to do."""

from __future__ import annotations

import re

from autosft.config.schema import POLICIES, Config
from autosft.errors import ConfigError
from autosft.types import FAMILIES

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def check_settings(config: Config) -> None:
    """Refuse combinations that cannot work.

    Raises:
        ConfigError: Names the setting.
    """
    campaign, suite, trainer = config.campaign, config.suite, config.trainer
    if not _NAME.fullmatch(campaign.name):
        raise _error(
            "campaign.name",
            f"{campaign.name!r} cannot name a folder",
            "use letters, digits, '.', '_' and '-'",
        )
    if not campaign.seeds:
        raise _error("campaign.seeds", "at least one training seed is needed", "e.g. campaign.seeds=0,1,2")
    if campaign.families is not None:
        unknown = [family for family in campaign.families if family not in FAMILIES]
        if unknown or not campaign.families:
            what = f"no action family named {unknown[0]!r}" if unknown else "at least one family is needed"
            raise _error("campaign.families", what, f"known: {', '.join(FAMILIES)}; null for all")
    if config.policy.name not in POLICIES:
        raise _error(
            "policy.name", f"no policy named {config.policy.name!r}", f"known: {', '.join(POLICIES)}"
        )
    if trainer.min_lr > trainer.lr:
        raise _error("trainer.min_lr", f"{trainer.min_lr:g} is above trainer.lr={trainer.lr:g}", "lower it")
    if trainer.backend == "torch" and trainer.ranks > 1:
        raise _error(
            "trainer.backend",
            f"the torch trainer uses one device, the settings ask for {trainer.ranks} ranks",
            "set trainer.backend=megatron, or the parallel sizes to 1",
        )
    if not config.components.base:
        raise _error(
            "components.base", "the base component cannot be switched off", "switch off others instead"
        )
    if not suite.names:
        raise _error("suite.names", "at least one primary suite is needed", "e.g. suite.names=lab")
    both = sorted(set(suite.names) & set(suite.guard))
    if both:
        raise _error(
            "suite.guard",
            f"{both[0]!r} is a primary suite already",
            "a suite is targeted or guarded, not both",
        )
    uses_file = "jsonl" in (*suite.names, *suite.guard)
    if uses_file and suite.path is None:
        raise _error("suite.path", "the suite `jsonl` needs a file of items", "set suite.path=FILE.jsonl")
    if suite.path is not None and not uses_file:
        raise _error("suite.path", "no suite reads it", "add `jsonl` to suite.names or suite.guard")


def _error(key: str, what: str, hint: str) -> ConfigError:
    return ConfigError(what, where=key, hint=hint)
