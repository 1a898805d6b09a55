"""Prompt templates: Markdown files of `prompts/`, filled in strictly.

`{{name}}` is replaced once, from left to right: braces in a value are text like any other. A name without a
value is an error, and so is a value without a name.
"""

from __future__ import annotations

import functools
import importlib.resources
import re
from pathlib import Path

from autosft.errors import ConfigError

_NAME = re.compile(r"\{\{(\w+)\}\}")


@functools.cache
def prompts_dir() -> Path:
    """Return the folder of templates: `autosft/_prompts` of an installed package, `prompts/` of a checkout.

    Raises:
        ConfigError: There is neither.
    """
    package = Path(str(importlib.resources.files("autosft")))
    for folder in (package / "_prompts", package.parent / "prompts"):
        if (folder / "meta.md").is_file():
            return folder
    raise ConfigError("the prompt templates are missing", where=str(package), hint="install autosft again")


def render(name: str, **values: str) -> str:
    """Fill in a template.

    Args:
        name: File name without `.md`.
        **values: One for each `{{name}}` in it.

    Raises:
        ConfigError: There is no such template, or names and values do not match.
    """
    path = prompts_dir() / f"{name}.md"
    try:
        template = path.read_text(encoding="utf-8").strip()
    except OSError:
        raise ConfigError(f"no prompt template {name!r}", where=str(path)) from None
    wanted = set(_NAME.findall(template))
    if wanted != set(values):
        missing, extra = sorted(wanted - set(values)), sorted(set(values) - wanted)
        what = f"no value for {missing[0]!r}" if missing else f"nothing asks for {extra[0]!r}"
        raise ConfigError(what, where=str(path), hint=f"names in it: {', '.join(sorted(wanted)) or 'none'}")
    return _NAME.sub(lambda found: values[found.group(1)], template)
