"""Tables over the views of a campaign; they read dictionaries and know nothing of files.

Every text may come from a pool or a model: it is cleaned, and printed as text, never as markup.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from autosft.report.text import clean, count, duration, score

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

View = Mapping[str, Any]


def make_console(stream: TextIO | None = None) -> Console:
    """Return a console: colours on a terminal only, 80 columns when piped unless COLUMNS says otherwise."""
    from rich.console import Console

    class PipeConsole(Console):
        def on_broken_pipe(self) -> None:
            # Rich would end the process with code 1; whether that is right is the caller's to say.
            raise BrokenPipeError

    return PipeConsole(file=stream or sys.stdout, highlight=False, markup=False, emoji=False)


def print_json(data: Any, stream: TextIO | None = None) -> None:
    """Print data as ASCII JSON, so that no text in it can steer a terminal; NaN becomes null."""
    (stream or sys.stdout).write(json.dumps(_plain(data), indent=2) + "\n")


def _plain(value: Any) -> Any:
    """Return JSON data; unlike a strict encoder this keeps text with lone surrogates, as pools hold it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (str, int)):
        return value
    # numpy scalars and arrays become Python's; anything else is shown as its text.
    return _plain(value.tolist()) if hasattr(value, "tolist") else str(value)


def show_status(console: Console, status: View) -> None:
    """Print a campaign's state, one line a key; nested values on one line."""
    table = make_table()
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for key, value in status.items():
        name, shown = str(key), _words(value)
        if name.endswith("_s") and isinstance(value, (int, float)):
            name, shown = name.removesuffix("_s"), duration(value)
        table.add_row(plain_text(name.replace("_", " ")), plain_text(shown))
    console.print(table)


def show_rounds(console: Console, rounds: Sequence[View]) -> None:
    """Print one line a round: score with its interval, what was done, and what was decided."""
    if not rounds:
        console.print("No finished round yet.")
        return
    table = make_table("round", "score", "interval", "seeds", "tokens", "actions", "verdict")
    for column in (1, 3, 4):
        table.columns[column].justify = "right"
    for row in rounds:
        marks = ("*" if _holds(row, "incumbent") else "") + ("!" if _holds(row, "claimed_best") else "")
        marks += "x" if row.get("invalidated") else ""
        table.add_row(
            plain_text(f"{row.get('round', '-')} {marks}".strip()),
            plain_text(score(row.get("score"))),
            plain_text(_interval(row)),
            plain_text(count(row.get("n_seeds"))),
            plain_text(count(row.get("train_tokens"))),
            plain_text(families_text(row.get("families"))),
            plain_text(_verdict(row)),
        )
    console.print(table)
    legend = "* incumbent   ! claimed best"
    legend += "   x does not count" if any(row.get("invalidated") for row in rounds) else ""
    console.print(legend, style="dim")


def show_taxonomy(console: Console, leaves: Sequence[View]) -> None:
    """Print one line a leaf: score, change against the best round, and supply in the pool."""
    if not leaves:
        console.print("No leaf has been scored yet.")
        return
    table = make_table("leaf", "score", "interval", "n", "vs best", "rows", "tokens", "targeted")
    for column in (1, 3, 4, 5, 6):
        table.columns[column].justify = "right"
    for row in sorted(leaves, key=lambda row: str(row.get("path", ""))):
        table.add_row(
            plain_text(row.get("path") or row.get("leaf") or "-"),
            plain_text(score(row.get("score"))),
            plain_text(_interval(row)),
            plain_text(count(row.get("n"))),
            plain_text(score(row.get("delta_best"), signed=True)),
            plain_text(count(row.get("supply_rows"))),
            plain_text(count(row.get("supply_tokens"))),
            plain_text(
                _words(row.get("targeted_rounds"))
                + (" (cannot teach yet)" if row.get("cannot_teach_yet") else "")
            ),
        )
    console.print(table)


def show_tree(console: Console, tree: View) -> None:
    """Print a taxonomy: one line a leaf, what it requires and a passing answer."""
    console.print(
        f"{clean(tree['name'])}, version {tree['version']}: {count(len(tree['leaves']))} leaves, "
        "each decided on its own examples just now"
    )
    table = make_table("leaf", "verifier", "demands")
    for path, leaf in sorted(tree["leaves"].items()):
        table.add_row(plain_text(path), plain_text(leaf["verifier"]), plain_text(leaf["description"]))
    console.print(table)


def show_actions(console: Console, actions: Sequence[View]) -> None:
    """Print one line an action: rows added, cut, edited, re-weighted and moved, counted from its diff."""
    if not actions:
        console.print("No action has been applied yet.")
        return
    table = make_table("round", "action", "added", "cut", "edited", "weight", "moved", "tokens", "best")
    for column in range(2, 8):
        table.columns[column].justify = "right"
    for row in actions:
        table.add_row(
            plain_text(row.get("round", "-")),
            plain_text(_action(row)),
            plain_text(count(row.get("rows_added"))),
            plain_text(count(row.get("rows_removed"))),
            plain_text(count(row.get("rows_changed"))),
            plain_text(count(row.get("rows_reweighted"))),
            plain_text(count(row.get("rows_moved"))),
            plain_text(count(row.get("tokens_delta"), signed=True)),
            plain_text("yes" if row.get("set_new_best") else "no"),
        )
    console.print(table)


def show_catalogue(console: Console, actions: Sequence[View]) -> None:
    """Print the catalogue: each action's kind, what it does, its parameters and one example."""
    from rich.padding import Padding

    for row in actions:
        console.print(plain_text(row.get("kind", "-"), style="bold"))
        first, *_ = str(row.get("doc") or "").strip().splitlines() or [""]
        console.print(Padding(plain_text(first), (0, 0, 0, 2), expand=False))
        schema = row.get("schema")
        properties = schema.get("properties", {}) if isinstance(schema, Mapping) else {}
        for name, field in properties.items():
            console.print(Padding(plain_text(f"{name}: {_field(field)}"), (0, 0, 0, 4), expand=False))
        example = {"kind": row.get("kind"), "params": row.get("example") or {}}
        console.print(
            Padding(plain_text(f"example: {json.dumps(example)}", "dim"), (0, 0, 0, 4), expand=False)
        )


def _field(field: object) -> str:
    """Say in words what a parameter's JSON schema holds: its meaning or type, and its default."""
    if not isinstance(field, Mapping):
        return "-"
    meaning = field.get("description")
    if not meaning:
        kinds = [
            f"one of {_words(part['enum'])}" if "enum" in part else part.get("type") for part in _parts(field)
        ]
        meaning = " or ".join(str(kind) for kind in kinds if kind) or "see the schema"
    default = field.get("default")
    shown = "none" if default is None else _words(default)
    return f"{meaning} " + (f"(default {shown})" if "default" in field else "(required)")


def _parts(field: View) -> Sequence[View]:
    return field.get("anyOf") or [field]


def _action(row: View) -> str:
    """Name an action, and its effect where that is not the family it belongs to."""
    kind, family = str(row.get("kind", "-")), row.get("family")
    return kind if kind.split("/", maxsplit=1)[0] == family else f"{kind} (effect: {family or 'none'})"


def make_table(*columns: str) -> Table:
    """Return an empty table that fits 80 columns; without columns it has no head."""
    from rich import box
    from rich.table import Table

    table = Table(
        box=box.SIMPLE_HEAD, show_header=bool(columns), pad_edge=False, padding=(0, 1, 0, 0), show_edge=False
    )
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def plain_text(value: object, style: str = "") -> Any:
    """Return a value as rich text that is cleaned and never read as markup."""
    from rich.text import Text

    return Text(clean(value), style=style)


def _verdict(row: View) -> str:
    """Return the verdict, or why the round does not count."""
    reason = row.get("invalidated")
    return f"does not count: {reason}" if reason else str(row.get("verdict") or "-")


def _holds(row: View, key: str) -> bool:
    value = row.get(key)
    return value if isinstance(value, bool) else value is not None and value == row.get("round")


def _interval(row: View) -> str:
    low, high = score(row.get("ci_low")), score(row.get("ci_high"))
    return "-" if "-" in (low, high) else f"{low} to {high}"


def families_text(families: object) -> str:
    """Return families and how many actions each: `prune x2, order`."""
    if not isinstance(families, Mapping) or not families:
        return "-"
    return ", ".join(f"{name}" if number == 1 else f"{name} x{number}" for name, number in families.items())


def _words(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_words(item)}" for key, item in value.items()) or "-"
    if isinstance(value, (list, tuple)):
        return ", ".join(_words(item) for item in value) or "-"
    return clean(value)
