"""What must stay the same while a campaign lives, and how to say what changed.

Paths are left out on purpose: a base, a pool and a suite are known by their fingerprints, wherever they lie.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from autosft.config.schema import Config
from autosft.identity import fingerprint

# Settings that decide how long, where or how fast a campaign runs, never what a round's result is.
OPERATIONAL = frozenset(
    {
        "campaign.name",
        "campaign.out",
        "campaign.rounds",
        "campaign.patience",
        "campaign.approve",
        "campaign.target_score",
        "trainer.timeout_s",
        "llm.base_url",
        "llm.api_key_env",
        "llm.retries",
        "llm.timeout_s",
        "llm.replay",
    }
)
OPERATIONAL_GROUPS = frozenset({"executor", "spend", "tracking"})
# Settings younger than some campaigns, at the value those campaigns had in effect.
ADDED: Mapping[str, Any] = {
    "campaign.families": None,
    "pool.sources": None,
    "pool.bad_files": "refuse",
    "pool.infer_requirements": False,
    "trainer.data_parallel": 1,
    "trainer.tensor_parallel": 1,
    "trainer.pipeline_parallel": 1,
    "trainer.micro_batch_tokens": 0,
    "trainer.recompute": False,
    "trainer.distributed_optimizer": False,
    "trainer.overlap": False,
}
# Of stored configurations, operational settings are completed too.
YOUNG_KEYS: Mapping[str, Any] = {
    **ADDED,
    "campaign.approve": False,
    "executor.shared_cache": True,
    "executor.backend": "direct",
    "executor.options": [],
}
# Groups that older campaigns do not have at all; they ran with the defaults.
YOUNG_GROUPS = frozenset({"llm", "tracking"})
PATHS = frozenset({"model.path", "pool.path", "suite.path"})
FROZEN_GROUPS = ("campaign", "trainer", "generate", "suite", "lab")


def frozen_settings(config: Config) -> dict[str, Any]:
    """Return what I3 and I13 freeze, dotted key -> value: training, generation, suites, scoring, claims."""
    return {
        key: value for key, value in campaign_settings(config).items() if key.split(".")[0] in FROZEN_GROUPS
    }


def campaign_settings(config: Config) -> dict[str, Any]:
    """Return every setting that decides a campaign's results: `frozen_settings`, policy and more."""
    flat = flatten(config.to_json())
    left_out = OPERATIONAL | PATHS
    # Only one policy talks to language models; the others' campaigns do not depend on these settings.
    groups = OPERATIONAL_GROUPS if config.policy.name == "llm" else OPERATIONAL_GROUPS | {"llm"}
    return {
        key: value for key, value in flat.items() if key not in left_out and key.split(".")[0] not in groups
    }


def settings_fingerprint(settings: Mapping[str, Any]) -> str:
    """Return the fingerprint of flattened settings, e.g. of `frozen_settings(config)`."""
    return fingerprint(dict(settings))


def changed_settings(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Say what differs between flattened settings, a line a key: `trainer.lr was 0.002, is now 0.001`."""
    missing = object()
    lines = []
    for key in sorted({*before, *after}):
        old, new = before.get(key, missing), after.get(key, missing)
        if old != new:
            was = "was not set" if old is missing else f"was {_value(old)}"
            lines.append(f"{key} {was}, is now {'not set' if new is missing else _value(new)}")
    return lines


def flatten(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested settings as one mapping with dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in data.items():
        if isinstance(value, Mapping):
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _value(value: Any) -> str:
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
