"""Templates of the live page; every text is cleaned and escaped on its way in."""

from __future__ import annotations

import functools
from functools import partial
from typing import Any

from autosft.report.text import clean, count, duration, score


def render(template: str, **values: Any) -> str:
    """Return a page."""
    return str(_environment().get_template(template).render(**values))


@functools.cache
def _environment() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("autosft.serve", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    environment.filters.update(
        score=score,
        signed=partial(score, signed=True),
        count=count,
        duration=duration,
        percent=lambda value: "–" if value is None else f"{value:.0%}",
    )
    return environment


def _finalize(value: Any) -> Any:
    # Markup is our own drawing; line breaks of foreign text stay, control characters do not.
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return "\n".join(clean(line) for line in value.split("\n"))
    return "–" if value is None else value
