"""Which model plays which role: the settings of the group `llm`, with overrides for single roles."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from autosft.config import LlmSettings
from autosft.errors import ConfigError

ROLES = (
    "meta",
    "solo",
    "data",
    "failures",
    "dynamics",
    "history",
    "executor",
    "synthesis",
    "review",
    "teacher",
)
#: Settings that a single role may have of its own.
OF_A_ROLE = (
    "vendor",
    "model",
    "base_url",
    "api_key_env",
    "temperature",
    "max_output_tokens",
    "window_tokens",
)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model as one role reaches it; the key itself is read from the environment when it is used."""

    vendor: str
    model: str
    base_url: str | None
    api_key_env: str | None
    temperature: float | None
    max_output_tokens: int
    window_tokens: int

    @property
    def identity(self) -> dict[str, Any]:
        """What decides a reply: neither the server's address nor the key."""
        return {"vendor": self.vendor, "model": self.model, "temperature": self.temperature}

    def key(self) -> str:
        """Return the API key.

        Raises:
            ConfigError: The variable is not set.
        """
        if self.api_key_env is None:
            return "none"
        value = os.environ.get(self.api_key_env, "").strip()
        if not value:
            raise ConfigError(
                f"the environment variable {self.api_key_env} is not set",
                where="llm.api_key_env",
                hint=f"export {self.api_key_env}=... (the key is never stored), or name another variable",
            )
        return value


def endpoint_for(settings: LlmSettings, role: str) -> Endpoint:
    """Return the endpoint of a role.

    Raises:
        ConfigError: An entry of `llm.roles` names no role or no setting, or its value does not fit.
    """
    own = {field.name: getattr(settings, field.name) for field in fields(Endpoint)}
    endpoint = Endpoint(**own)
    changes: dict[str, Any] = {}
    for entry in settings.roles:
        named, name, value = _read(entry)
        if named == role:
            changes[name] = value
    # Another vendor's default server and key are not this one's.
    if "vendor" in changes and changes["vendor"] != endpoint.vendor:
        default = {"base_url": None, "api_key_env": f"{changes['vendor'].upper()}_API_KEY"}
        changes = {**default, **changes}
    return replace(endpoint, **changes)


def endpoints(settings: LlmSettings) -> Mapping[str, Endpoint]:
    """Return every role's endpoint; checks all overrides.

    Raises:
        ConfigError: An override cannot be read.
    """
    return {role: endpoint_for(settings, role) for role in ROLES}


def _read(entry: str) -> tuple[str, str, Any]:
    where = f"llm.roles {entry!r}"
    target, equals, text = entry.partition("=")
    role, dot, name = target.strip().partition(".")
    if not equals or not dot:
        raise ConfigError("not an override of a role", where=where, hint="write role.setting=value")
    if role not in ROLES:
        raise ConfigError(f"no role {role!r}", where=where, hint=_near(role, ROLES))
    if name not in OF_A_ROLE:
        raise ConfigError(f"no setting {name!r} of a role", where=where, hint=_near(name, OF_A_ROLE))
    text = text.strip()
    if text == "null" and name in ("base_url", "api_key_env", "temperature"):
        return role, name, None
    try:
        value: Any = int(text) if name.endswith("_tokens") else float(text) if name == "temperature" else text
    except ValueError:
        raise ConfigError(f"cannot be {text!r}", where=where, hint="expected a number") from None
    if name == "vendor" and value not in ("openai", "anthropic"):
        raise ConfigError(f"no vendor {value!r}", where=where, hint="openai or anthropic")
    if value == "" or (name.endswith("_tokens") and value < 16):
        raise ConfigError(f"cannot be {text!r}", where=where, hint="give a usable value")
    return role, name, value


def _near(name: str, known: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}"
