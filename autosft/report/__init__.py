"""What people see: live progress, plain lines when piped, and tables over the views of a campaign."""

from __future__ import annotations

from autosft.report.live import Follower, follow
from autosft.report.tables import (
    make_console,
    print_json,
    show_actions,
    show_catalogue,
    show_rounds,
    show_status,
    show_taxonomy,
)
from autosft.report.text import clean

__all__ = [
    "Follower",
    "clean",
    "follow",
    "make_console",
    "print_json",
    "show_actions",
    "show_catalogue",
    "show_rounds",
    "show_status",
    "show_taxonomy",
]
