"""Write constraints.txt: the installed version of everything that `autosft[dev]` brings along.

Run it in an environment in which all tests pass: `.venv/bin/python scripts/write_constraints.py`.
"""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HEAD = """\
# Tested versions of everything that autosft[dev] brings along, on Python 3.11. Set-up and CI install with
# these; the ranges in pyproject.toml are what the package asks for. Written by scripts/write_constraints.py.
"""


def closure(name: str, extras: frozenset[str]) -> dict[str, str]:
    """Return `name -> version` of all distributions that `name[extras]` needs here, itself included."""
    installed = {canonicalize_name(dist.metadata["Name"]): dist for dist in metadata.distributions()}
    pinned: dict[str, str] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [(name, extras)]
    while waiting:
        wanted, its_extras = waiting.pop()
        key = canonicalize_name(wanted)
        if (key, its_extras) in seen:
            continue
        seen.add((key, its_extras))
        if key not in installed:
            sys.exit(f"{wanted} is needed but not installed: run `make setup` first")
        pinned[installed[key].metadata["Name"]] = installed[key].version
        for line in installed[key].requires or []:
            needed = Requirement(line)
            marker = needed.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in its_extras | {""}):
                waiting.append((needed.name, frozenset(needed.extras)))
    return pinned


def main() -> None:
    pinned = closure("autosft", frozenset({"dev"}))
    del pinned["autosft"]
    # A local build tag such as +cpu cannot be asked of a registry.
    lines = sorted((f"{name}=={version.split('+')[0]}" for name, version in pinned.items()), key=str.lower)
    Path("constraints.txt").write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")
    print(f"constraints.txt: {len(lines)} packages")


if __name__ == "__main__":
    main()
