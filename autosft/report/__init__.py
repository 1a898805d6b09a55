"""What people see: live progress, plain lines when piped, tables and an HTML page over a campaign's views."""

from __future__ import annotations

from autosft.report.details import (
    show_build,
    show_diff,
    show_doctor,
    show_histogram,
    show_hypotheses,
    show_leaf,
    show_lineage,
)
from autosft.report.evaluation import show_evaluation
from autosft.report.live import Follower, follow
from autosft.report.page import render_page, write_page
from autosft.report.sweep import sweep_markdown, write_sweep
from autosft.report.tables import (
    make_console,
    print_json,
    show_actions,
    show_catalogue,
    show_rounds,
    show_status,
    show_taxonomy,
    show_tree,
)
from autosft.report.text import clean

__all__ = [
    "Follower",
    "clean",
    "follow",
    "make_console",
    "print_json",
    "render_page",
    "show_actions",
    "show_build",
    "show_catalogue",
    "show_diff",
    "show_doctor",
    "show_evaluation",
    "show_histogram",
    "show_hypotheses",
    "show_leaf",
    "show_lineage",
    "show_rounds",
    "show_status",
    "show_taxonomy",
    "show_tree",
    "sweep_markdown",
    "write_page",
    "write_sweep",
]
