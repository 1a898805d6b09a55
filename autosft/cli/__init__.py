"""The `autosft` command: thin. It loads settings, calls the library, and prints what the views return.

Exit codes: 0 done; 1 an unexpected fault (a log with its traceback is named), or a `doctor` row that fails;
2 wrong use or a refused step; 130 stopped by Ctrl-C, 143 by SIGTERM or a closed terminal.
"""

from __future__ import annotations

from autosft.cli.entry import main, run_command

__all__ = ["main", "run_command"]
