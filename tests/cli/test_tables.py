"""Tables: complete on 80 columns, plain when piped, and deaf to hostile text."""

from __future__ import annotations

import io
import json
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from autosft import report
from autosft.report.text import clean, count, duration, redact, score
from tests.cli.fixtures import ACTIONS, HOSTILE, LEAVES, ROUNDS, STATUS


def printed(show: Callable[[Console, Any], None], view: Any) -> str:
    stream = io.StringIO()
    show(report.make_console(stream), view)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("show", "view"),
    [
        (report.show_rounds, ROUNDS),
        (report.show_taxonomy, LEAVES),
        (report.show_actions, ACTIONS),
        (report.show_status, STATUS),
    ],
)
def test_tables_are_plain_and_fit_80_columns(
    show: Callable[[Console, Any], None], view: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    text = printed(show, view)
    assert text.strip()
    for line in text.splitlines():
        assert len(line) <= 80, line
        assert not any(unicodedata.category(char) in ("Cc", "Cf", "Cs") for char in line), repr(line)


def test_rounds_show_what_was_measured_and_decided() -> None:
    text = printed(report.show_rounds, ROUNDS)
    assert ".395" in text and ".370 to .420" in text and "123,456" in text
    assert "prune x2" in text.replace("\n", " ")
    assert "1 *" in text and "0 !" in text
    assert "not distinguishable" in " ".join(text.split())


def test_status_speaks_in_units_people_read() -> None:
    lines = [" ".join(line.split()) for line in printed(report.show_status, STATUS).splitlines()]
    assert {"budget tokens 120,000", "elapsed 3 min 20 s", "incumbent score 0.5123", "stop reason -"} <= set(
        lines
    )


def test_missing_figures_are_dashes_never_zeros() -> None:
    text = printed(report.show_rounds, [{"round": 3}])
    assert text.splitlines()[2].split() == ["3", "-", "-", "-", "-", "-", "-"]
    assert "nan" not in printed(report.show_taxonomy, LEAVES)


def test_an_action_is_shown_with_its_effect_where_it_differs() -> None:
    text = " ".join(printed(report.show_actions, ACTIONS).split())
    assert "1,200" in text and "-12,345" in text and "effect:" in text and "mix" in text


def test_empty_views_say_so() -> None:
    assert "No finished round" in printed(report.show_rounds, [])
    assert "No leaf" in printed(report.show_taxonomy, [])
    assert "No action" in printed(report.show_actions, [])


def test_hostile_text_is_shown_as_text() -> None:
    text = printed(report.show_status, STATUS)
    assert "[bold]b[/bold] :smile: next" in " ".join(text.split())
    assert "title" not in text and "[31m" not in text


def test_colours_on_a_terminal_only_and_not_with_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    event = report.make_console(Terminal())
    event.print("x", style="green")
    assert "\x1b[32m" in event.file.getvalue()  # type: ignore[attr-defined]
    monkeypatch.setenv("NO_COLOR", "1")
    event = report.make_console(Terminal())
    event.print("x", style="green")
    assert "\x1b[32m" not in event.file.getvalue()  # type: ignore[attr-defined]


def test_the_catalogue_says_what_each_parameter_is() -> None:
    schema = {
        "properties": {
            "leaves": {"anyOf": [{"type": "array"}, {"type": "null"}], "default": None},
            "match": {"enum": ["row", "prompt"], "default": "row"},
            "ids": {"type": "array", "description": "Row ids.\x1b[2J"},
        }
    }
    lines = printed(
        report.show_catalogue, [{"kind": "prune/x", "doc": "Drop rows.\n\nMore.", "schema": schema}]
    )
    assert lines.splitlines() == [
        "prune/x",
        "  Drop rows.",
        "    leaves: array or null (default none)",
        "    match: one of row, prompt (default row)",
        "    ids: Row ids. (required)",
        '    example: {"kind": "prune/x", "params": {}}',
    ]


def test_json_is_ascii_and_reads_back() -> None:
    stream = io.StringIO()
    report.print_json(
        [{**ROUNDS[0], "verdict": "a\x1b[31m\u202eb", "score": float("nan"), "seeds": {1: 2}}], stream
    )
    text = stream.getvalue()
    assert text.isascii() and "\x1b" not in text
    (row,) = json.loads(text)
    assert row["verdict"] == "a\x1b[31m\u202eb" and row["score"] is None and row["seeds"] == {"1": 2}


@given(st.text())
def test_cleaned_text_is_one_harmless_line(text: str) -> None:
    cleaned = clean(text)
    assert not any(unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") for char in cleaned)
    assert clean(cleaned) == cleaned
    assert len(clean(text, limit=5)) <= 5


def test_cleaning_keeps_what_is_readable() -> None:
    assert clean("Grüße, 你好 a\tb") == "Grüße, 你好 a b"
    assert clean(HOSTILE) == "leafred gnp [bold]b[/bold] :smile: next \ufffd"


def test_numbers_for_people() -> None:
    assert [score(x) for x in (0.5, 1.0, 0, None, float("nan"), True)] == [
        ".500",
        "1.000",
        ".000",
        "-",
        "-",
        "-",
    ]
    assert score(-0.04, signed=True) == "-.040" and score(0.04, signed=True) == "+.040"
    assert score(-0.0001, signed=True) == score(-0.0001) == ".000" and count(0, signed=True) == "0"
    assert count(1234567) == "1,234,567" and count(None) == "-" and count(5, signed=True) == "+5"
    assert [duration(x) for x in (8, 200, 7500, None, -1)] == ["8 s", "3 min 20 s", "2 h 05 min", "?", "?"]


def test_secrets_of_the_environment_are_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "value-of-the-key-123")
    monkeypatch.setenv("EMPTY_TOKEN", "")
    assert redact("denied: value-of-the-key-123!") == "denied: [SOME_API_KEY]!"
