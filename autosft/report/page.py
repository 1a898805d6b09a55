"""One self-contained HTML file about a campaign: no script, no network, equal records give equal bytes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from autosft.errors import CampaignError
from autosft.report import figures, summary
from autosft.report.text import clean, count, duration, score

View = Mapping[str, Any]
# More rounds than this are too many columns for a table: the ones that set a new best and the last are kept.
MAX_COLUMNS = 24
# Longer lists are folded, so that the page can be scrolled through.
MAX_OPEN = 40


def write_page(view: View, path: Path) -> Path:
    """Write a campaign's report; return the path.

    Args:
        view: What `autosft.meta.views_report.campaign_report` returns.
        path: The file; replaced as a whole.

    Raises:
        CampaignError: The file cannot be written.
    """
    text = render_page(view)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8", errors="replace")
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise CampaignError(
            f"the report cannot be written ({error.strerror})", where=str(path), hint="choose another --out"
        ) from None
    return path


def render_page(view: View) -> str:
    """Return a campaign's report as HTML.

    Every text is escaped on its way in and cleaned of control characters: rows and models wrote some of it.

    Args:
        view: What `autosft.meta.views_report.campaign_report` returns.
    """
    columns = _columns(view["rounds"])
    return render_template(
        "page.html.j2",
        v=view,
        headline=summary.headline(view),
        sentences=summary.sentences(view),
        figures=figures.draw(view),
        void={r["round"] for r in view["lineage"] if r["invalidated"]},
        columns=columns,
        long=len(view["rounds"]) > MAX_OPEN,
        heat=_heat(view["leaves"], columns, view["status"]["incumbent"]),
    )


def render_template(name: str, **values: Any) -> str:
    """Render a template of the package with the shared style sheet, given as `css`, and filters."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("autosft.report", "templates"),
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
        percent=lambda value: "-" if value is None else f"{value:.1%}",
    )
    css = (files("autosft.report") / "templates" / "page.css").read_text(encoding="utf-8")
    return environment.get_template(name).render(css=Markup(css), **values)


def _finalize(value: Any) -> Any:
    # Markup is our own drawing; every other text goes through the cleaner before Jinja escapes it.
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return clean(value)
    return "–" if value is None else value


def _columns(rounds: Sequence[View]) -> list[int]:
    """Return the rounds that get a column of their own in wide tables."""
    numbers = [r["round"] for r in rounds if r["score"] is not None]
    if len(numbers) <= MAX_COLUMNS:
        return numbers
    kept = [r["round"] for r in rounds if r["set_new_best"]][: MAX_COLUMNS // 2]
    last = [n for n in numbers if n not in kept][-(MAX_COLUMNS - len(kept)) :]
    return sorted({*kept, *last})


def _heat(leaves: Sequence[View], columns: Sequence[int], best: int | None) -> list[dict[str, Any]]:
    """Return the leaves' cells (score, shade 0 to 10, verdict) and the change from round 0 to the best."""
    rows = []
    for leaf in sorted(leaves, key=lambda leaf: str(leaf["path"])):
        cells = []
        for number in columns:
            cell = leaf["rounds"].get(str(number))
            value = None if cell is None else cell["score"]
            cells.append(
                {
                    "round": number,
                    "score": value,
                    "shade": None if value is None else round(10 * max(0.0, min(1.0, value))),
                    "verdict": (cell or {}).get("verdict"),
                }
            )
        first, last = leaf["rounds"].get("0"), leaf["rounds"].get(str(best))
        change = None if first is None or last is None else last["score"] - first["score"]
        rows.append({"leaf": leaf["leaf"], "path": leaf["path"], "cells": cells, "change": change})
    return rows
