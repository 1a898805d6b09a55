"""Hydra at the front: `conf/` plus overrides -> `Config`.

Overrides are checked against the schema before Hydra sees them, so that people read about their key instead
of Hydra's parser: text is quoted for Hydra's grammar (paths may hold spaces, `=` or parentheses), a list may
be written as `a,b`, and `model=PATH` is short for `model.path=PATH`.
"""

from __future__ import annotations

import difflib
import importlib.resources
import re
import typing
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from autosft.config.checks import check_settings
from autosft.config.frozen import YOUNG_GROUPS, YOUNG_KEYS
from autosft.config.schema import Config
from autosft.config.values import bare, describe, field_types, known_keys, read_settings, unknown_key
from autosft.errors import ConfigError

ALIASES = {"suite.name": "suite.names", "program": "programs", "campaign.seed": "campaign.seeds"}
PATH_KEYS = ("model.path", "pool.path", "suite.path")


def conf_dir() -> Path:
    """Return the folder of settings files: `autosft/_conf` of an installed package, `conf/` of a checkout.

    Raises:
        ConfigError: There is neither.
    """
    package = Path(str(importlib.resources.files("autosft")))
    for folder in (package / "_conf", package.parent / "conf"):
        if (folder / "config.yaml").is_file():
            return folder
    raise ConfigError(
        "the settings files are missing", where=str(package / "_conf"), hint="install autosft again"
    )


def presets(group: str) -> list[str]:
    """Return the names of a group's settings files, e.g. `components -> [all, base, ...]`."""
    return sorted(path.stem for path in (conf_dir() / group).glob("*.yaml"))


def load_config(overrides: Sequence[str] = ()) -> Config:
    """Compose the settings files and overrides into a typed, checked configuration.

    Args:
        overrides: `key=value` with a dotted key (`trainer.lr=1e-3`), or `group=preset` (`components=base`),
            or `model=PATH`, `pool=PATH`, `suite=PATH`. Later ones win.

    Returns:
        The configuration; given paths exist and are absolute.

    Raises:
        ConfigError: An override is malformed, its key unknown, its value unfit, or a path does not exist.
    """
    chosen: dict[str, str] = {}
    for override in overrides:
        key, line = _read_override(override)
        # A preset and a key inside it are different things; the same key given twice is not an error.
        chosen.pop(key, None)
        chosen[key] = line
    if "suite.path" in chosen and "suite.names" not in chosen and "suite" not in chosen:
        chosen["suite"] = "suite=jsonl"
    plain = _compose(list(chosen.values()))
    _resolve_order(plain)
    config = read_settings(Config, plain)
    check_settings(config)
    return _absolute_paths(config)


def config_from_json(data: Any) -> Config:
    """Read what `Config.to_json` wrote, now or before some settings existed; paths are taken as they are.

    Raises:
        ConfigError: A key is unknown or missing, or a value does not fit.
    """
    config = read_settings(Config, _completed(data))
    check_settings(config)
    return config


def _completed(data: Any) -> Any:
    """Fill in settings that are younger than the data: whole groups, and keys of `YOUNG_KEYS`."""
    if not isinstance(data, Mapping):
        return data
    found = {key: dict(value) if isinstance(value, Mapping) else value for key, value in data.items()}
    if missing := field_types(Config).keys() - found.keys():
        defaults = load_config([]).to_json()
        found.update({group: defaults[group] for group in missing & YOUNG_GROUPS})
    for key, value in YOUNG_KEYS.items():
        group, name = key.split(".")
        if isinstance(found.get(group), dict):
            found[group].setdefault(name, value)
    return found


def _read_override(override: str) -> tuple[str, str]:
    """Check one override; return its key and the line for Hydra."""
    key, equals, value = override.partition("=")
    key = key.strip()
    if key[:1] in "+~":
        raise ConfigError(
            "settings cannot be added or removed", where=override, hint="write key=value; null switches off"
        )
    if not equals or not key:
        raise ConfigError(
            "not an override", where=repr(override), hint="write key=value, e.g. campaign.rounds=6"
        )
    key = ALIASES.get(key, key)
    groups = field_types(Config)
    if key in groups and key not in known_keys():
        return _read_preset(key, value.strip())
    if key not in known_keys():
        raise unknown_key(key)
    return key, f"{key}={_for_hydra(value, known_keys()[key], key)}"


def _read_preset(group: str, value: str) -> tuple[str, str]:
    names = presets(group)
    if value in names:
        return group, f"{group}={value}"
    if f"{group}.path" in PATH_KEYS and (
        value.startswith(("/", ".", "~")) or Path(value).exists() or _is_pool_url(group, value)
    ):
        key = f"{group}.path"
        return key, f"{key}={_quoted(value)}"
    near = difflib.get_close_matches(value, names, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(names)}"
    paths = "; a path must exist" if f"{group}.path" in PATH_KEYS else f"; or set {group}.<key>=value"
    raise ConfigError(
        f"no settings file {value!r} in group {group}", where=f"{group}={value}", hint=hint + paths
    )


def _for_hydra(value: str, kind: Any, key: str) -> str:
    """Write a value so that Hydra's grammar reads what was meant, whatever characters it holds."""
    text = value.strip()
    inner = bare(kind)
    if text == "null":
        return text
    if typing.get_origin(inner) is tuple:
        items = text[1:-1] if text[:1] + text[-1:] == "[]" else text
        parts = [part.strip() for part in items.split(",") if part.strip()]
        quote = typing.get_args(inner)[0] is str
        return "[" + ",".join(_quoted(part) if quote else _token(part, kind, key) for part in parts) + "]"
    if inner is str or typing.get_origin(inner) is typing.Literal:
        return _quoted(text)
    return _token(text, kind, key)


def _token(text: str, kind: Any, key: str) -> str:
    """Pass a number or a boolean on as it is; anything that is neither would fail inside Hydra's parser."""
    if text and all(char.isalnum() or char in "+-._" for char in text):
        return text
    raise ConfigError(f"cannot be {text!r}", where=key, hint=f"expected {describe(kind, key)}")


def _quoted(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        text = text[1:-1]
    if "${" in text:
        raise ConfigError(
            "references to other settings are not supported", where=text, hint="write the value itself"
        )
    # Hydra un-escapes backslashes only in a run that ends at a quote; there each stands for two.
    escaped = re.sub(r"(\\*)'", lambda run: run[1] * 2 + "\\'", text)
    trailing = len(escaped) - len(escaped.rstrip("\\"))
    return f"'{escaped}{chr(92) * trailing}'"


def _compose(overrides: list[str]) -> dict[str, Any]:
    from hydra import compose, initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    # Hydra keeps one state a process; an application around us may have its own, and gets it back.
    state = GlobalHydra.instance()
    outer, state.hydra = state.hydra, None
    try:
        with initialize_config_dir(str(conf_dir()), version_base="1.3"):
            composed = compose("config", overrides=overrides)
            plain = OmegaConf.to_container(composed, resolve=True)
    except (HydraException, OmegaConfBaseException) as error:
        first = str(error).strip().splitlines()[0]
        raise ConfigError(
            first, where=str(conf_dir()), hint=f"overrides: {' '.join(overrides) or 'none'}"
        ) from None
    finally:
        GlobalHydra.set_instance(state)
        state.hydra = outer
    assert isinstance(plain, dict)
    return typing.cast(dict[str, Any], plain)


def _resolve_order(plain: Mapping[str, Any]) -> None:
    pool = plain.get("pool")
    if isinstance(pool, dict) and pool.get("order") == "auto":
        pool["order"] = "file" if pool.get("path") is None else "shuffle"


def _is_pool_url(group: str, value: str) -> bool:
    """Rows may lie on an object store; bases and suites lie on a disk."""
    return group == "pool" and "://" in value


def _absolute_paths(config: Config) -> Config:
    for key in PATH_KEYS:
        group, name = key.split(".")
        value = getattr(getattr(config, group), name)
        if value is None or _is_pool_url(group, value):
            continue
        path = Path(value).expanduser().absolute()
        if not path.exists():
            raise ConfigError(f"nothing lies at {value}", where=key, hint="give an existing file or folder")
        config = replace(config, **{group: replace(getattr(config, group), **{name: str(path)})})
    return config
