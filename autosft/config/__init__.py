"""Configuration: typed settings, composed by Hydra from `conf/` and overrides, checked before use."""

from __future__ import annotations

from autosft.config.checks import check_settings
from autosft.config.compose import conf_dir, config_from_json, load_config, presets
from autosft.config.frozen import (
    ADDED,
    campaign_settings,
    changed_settings,
    frozen_settings,
    settings_fingerprint,
)
from autosft.config.schema import (
    POLICIES,
    CampaignSettings,
    ComponentSettings,
    Config,
    ExecutorSettings,
    HoldoutSettings,
    LabSettings,
    LlmSettings,
    ModelSettings,
    PolicySettings,
    PoolSettings,
    SpendSettings,
    SuiteSettings,
    TrackingSettings,
)

__all__ = [
    "ADDED",
    "POLICIES",
    "CampaignSettings",
    "ComponentSettings",
    "Config",
    "ExecutorSettings",
    "HoldoutSettings",
    "LabSettings",
    "LlmSettings",
    "ModelSettings",
    "PolicySettings",
    "PoolSettings",
    "SpendSettings",
    "SuiteSettings",
    "TrackingSettings",
    "campaign_settings",
    "changed_settings",
    "check_settings",
    "conf_dir",
    "config_from_json",
    "frozen_settings",
    "load_config",
    "presets",
    "settings_fingerprint",
]
